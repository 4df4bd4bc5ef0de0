"""What a suite is: its file, tasks, models and headline, and what mteb says of its tasks."""
