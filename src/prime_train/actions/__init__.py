"""What the actions call: one verb each, told everything by the environment and the event's file, answering by outputs and summary."""
