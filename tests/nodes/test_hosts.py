"""Names, lists of names, and the command that reaches a machine."""

from __future__ import annotations

import argparse

import pytest

from sgmon.commands.hosts import SRUN, add_host_arguments, hosts_of
from sgmon.commands.watching import UsageError, add_target_arguments, settings_from
from sgmon.remote.hosts import HostError, expand, in_file, reach


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("node[01-04,07]", ["node01", "node02", "node03", "node04", "node07"]),
        ("gpu[8-11]-ib,login", ["gpu8-ib", "gpu9-ib", "gpu10-ib", "gpu11-ib", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("n[1,3],n[3-4]", ["n1", "n3", "n4"]),
        ("n[5]", ["n5"]),
        ("", []),
    ],
)
def test_a_list_of_slurm(listed, names):
    assert list(expand(listed)) == names


@pytest.mark.parametrize("listed", ["n[1", "n1]", "n[a-b]", "n[3-1]", "n[[1]]", "n[1-]", "n[0-99999]", "n[]"])
def test_what_is_no_list_is_refused(listed):
    with pytest.raises(HostError):
        expand(listed)


def test_names_of_a_file():
    assert in_file("# mine\n\na  slots=8\nn[1-2]   # two\na\n") == ("a", "n1", "n2")


def test_ssh_gets_one_word_for_the_far_shell_and_others_get_words():
    by_ssh = reach("node-a").argv
    assert by_ssh[:5] == ("ssh", "-o", "BatchMode=yes", "-T", "node-a")
    assert len(by_ssh) == 6
    assert by_ssh[5].startswith("python3 -I -c 'import sys;")
    by_pod = reach("pod-1", "kubectl exec -i {} --", "python3.11").argv
    assert by_pod[:8] == ("kubectl", "exec", "-i", "pod-1", "--", "python3.11", "-I", "-c")
    assert by_pod[8].startswith("import sys;")
    assert reach("h", "/usr/bin/ssh -J jump {}").argv[-1].startswith("python3 ")
    assert reach("c; rm -rf x".replace(" ", "_"), "docker exec -i {}").argv[3] == "c;_rm_-rf_x"


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "-", "", "a b", "a\nb", "a\x1bb"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(HostError, match="no host name"):
        reach(name)


@pytest.mark.parametrize(
    ("via", "words"), [("docker exec -i", "has no {}"), ("'", "is no command"), (" ", "is empty")]
)
def test_a_template_that_cannot_be_used(via, words):
    with pytest.raises(HostError, match=words):
        reach("a", via)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_target_arguments(parser)
    add_host_arguments(parser)
    return parser.parse_args(words)


def test_hosts_of_the_command_line(tmp_path):
    listed = tmp_path / "hosts"
    listed.write_text("c\nb\n")
    args = parsed("--host", "n[1-2]", "--host", "b", "--hosts", str(listed))
    assert hosts_of(args) == (("n1", "n2", "b", "c"), "")
    assert hosts_of(parsed()) == ((), "")
    slurm = {"SLURM_JOB_NODELIST": "n[1-2]"}
    assert hosts_of(parsed("--hosts", "slurm"), slurm, lambda name: "/bin/srun") == (("n1", "n2"), SRUN)
    assert hosts_of(parsed("--hosts", "slurm"), slurm, lambda name: None) == (("n1", "n2"), "")
    assert hosts_of(parsed("--hosts", "slurm", "--via", "rsh {}"), slurm)[1] == "rsh {}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--via", "kubectl exec -i {} --"], "none is named"),
        (["--remote-python", "python3.11"], "none is named"),
        (["--host=-x"], "no host name"),
        (["--host", "a", "--via", "docker exec"], "has no {}"),
        (["--host", "a", "--host", "b", "--pid", "3"], "--pid names a process of one node"),
        (["--host", "a", "--log", "-"], "--log -"),
        (["--hosts", "/nowhere/hosts"], "cannot be read"),
        (["--hosts", "/dev/null"], "names no host"),
        (["--host", "n[1"], "brackets"),
    ],
)
def test_a_wrong_combination_is_said_in_one_sentence(words, said):
    with pytest.raises(UsageError) as caught:
        settings_from(parsed(*words))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_list_of_slurm_is_said(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    with pytest.raises(UsageError, match="inside the job"):
        settings_from(parsed("--hosts", "slurm"))


def test_a_log_of_another_machine_is_not_looked_for_here():
    settings = settings_from(parsed("--host", "a", "--log", "/only/there.log"))
    assert (settings.log, settings.hosts) == ("/only/there.log", ("a",))
