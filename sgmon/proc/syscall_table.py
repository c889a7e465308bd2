"""Numbers of the system calls in which a process may be found, from the kernel's unistd headers.

x86_64: arch/x86/entry/syscalls/syscall_64.tbl; aarch64: include/uapi/asm-generic/unistd.h (Linux 6.1).
"""

from __future__ import annotations

import os

_X86_64 = """
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11
    ioctl=16 pread64=17 pwrite64=18 readv=19 writev=20 access=21 select=23 sched_yield=24 msync=26
    madvise=28 pause=34 nanosleep=35 sendfile=40 connect=42 accept=43 sendto=44 recvfrom=45
    sendmsg=46 recvmsg=47 shutdown=48 clone=56 fork=57 vfork=58 execve=59 exit=60 wait4=61 kill=62
    semop=65 msgrcv=70 fcntl=72 flock=73 fsync=74 fdatasync=75 ftruncate=77 getdents=78 rename=82
    mkdir=83 unlink=87 readlink=89 ptrace=101 rt_sigtimedwait=128 rt_sigsuspend=130 statfs=137
    fstatfs=138 mlock=149 mlockall=151 sync=162 mount=165 umount2=166 readahead=187 futex=202
    sched_setaffinity=203 io_destroy=207 io_getevents=208 io_submit=209 getdents64=217
    restart_syscall=219 semtimedop=220 fadvise64=221 clock_nanosleep=230 exit_group=231
    epoll_wait=232 mbind=237 set_mempolicy=238 mq_timedreceive=243 waitid=247 migrate_pages=256
    openat=257 newfstatat=262 unlinkat=263 readlinkat=267 faccessat=269 pselect6=270 ppoll=271
    splice=275 tee=276 sync_file_range=277 move_pages=279 epoll_pwait=281 fallocate=285 accept4=288
    preadv=295 pwritev=296 recvmmsg=299 syncfs=306 sendmmsg=307 process_vm_readv=310 getrandom=318
    memfd_create=319 bpf=321 execveat=322 userfaultfd=323 membarrier=324 mlock2=325
    copy_file_range=326 preadv2=327 pwritev2=328 statx=332 io_pgetevents=333 rseq=334
    io_uring_enter=426 pidfd_open=434 clone3=435 openat2=437 faccessat2=439 epoll_pwait2=441
    futex_waitv=449
"""

_AARCH64 = """
    io_destroy=1 io_submit=2 io_getevents=4 epoll_pwait=22 fcntl=25 ioctl=29 flock=32 unlinkat=35
    umount2=39 mount=40 statfs=43 fstatfs=44 ftruncate=46 fallocate=47 faccessat=48 openat=56
    close=57 getdents64=61 lseek=62 read=63 write=64 readv=65 writev=66 pread64=67 pwrite64=68
    preadv=69 pwritev=70 sendfile=71 pselect6=72 ppoll=73 splice=76 tee=77 readlinkat=78
    newfstatat=79 fstat=80 sync=81 fsync=82 fdatasync=83 sync_file_range=84 exit=93 exit_group=94
    waitid=95 futex=98 nanosleep=101 clock_nanosleep=115 ptrace=117 sched_setaffinity=122
    sched_yield=124 restart_syscall=128 kill=129 rt_sigsuspend=133 rt_sigtimedwait=137
    mq_timedreceive=183 msgrcv=188 semtimedop=192 semop=193 accept=202 connect=203 sendto=206
    recvfrom=207 shutdown=210 sendmsg=211 recvmsg=212 readahead=213 munmap=215 clone=220 execve=221
    mmap=222 fadvise64=223 mprotect=226 msync=227 mlock=228 mlockall=230 madvise=233 mbind=235
    set_mempolicy=237 migrate_pages=238 move_pages=239 accept4=242 recvmmsg=243 wait4=260 syncfs=267
    sendmmsg=269 process_vm_readv=270 getrandom=278 memfd_create=279 bpf=280 execveat=281
    userfaultfd=282 membarrier=283 mlock2=284 copy_file_range=285 preadv2=286 pwritev2=287 statx=291
    io_pgetevents=292 rseq=293 io_uring_enter=426 pidfd_open=434 clone3=435 openat2=437
    faccessat2=439 epoll_pwait2=441 futex_waitv=449
"""


def _numbers(table: str) -> dict[int, str]:
    return {int(number): name for name, _, number in (cell.partition("=") for cell in table.split())}


TABLES: dict[str, dict[int, str]] = {"x86_64": _numbers(_X86_64), "aarch64": _numbers(_AARCH64)}


def name(number: int, machine: str = "") -> str:
    """The call's name on this machine ("x86_64", "aarch64"); "syscall 999" when the table does not hold it."""
    return TABLES.get(machine or os.uname().machine, {}).get(number, f"syscall {number}")
