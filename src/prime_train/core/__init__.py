"""The pure logic about runs, pods and checkpoints: no clock, file, network, environment or log."""
