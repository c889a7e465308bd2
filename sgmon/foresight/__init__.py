"""What will fail, said before it fails: rules over facts (``sgmon.model.preflight``). Pure."""
