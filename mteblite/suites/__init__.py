"""What a suite is: its file, its tasks and models, its headline, and what mteb says of its tasks."""
