"""What the doctor looks at, where no command line is needed for it: checks, and how they run."""
