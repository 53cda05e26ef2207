"""Pods on Prime Intellect: machines of many providers behind one API and one wallet."""
