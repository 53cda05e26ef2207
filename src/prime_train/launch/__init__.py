"""The start of a run: dry run, launch, probe, resume, drill, and the code that goes along."""
