"""What is mounted into a sandbox: a rank's own side. Nothing here decides anything about a verdict."""
