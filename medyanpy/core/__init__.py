"""Modules that beads, forces, jumps and the engine share: handles, columns, flows, letters, sites, the layout."""
