"""What others wrote must stay text: at every sink, in every file, in every number."""
