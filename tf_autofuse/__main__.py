"""`python -m tf_autofuse`: the same as the command tf-autofuse."""
from tf_autofuse.cli import main

if __name__ == "__main__":
    main(prog_name="python -m tf_autofuse")
