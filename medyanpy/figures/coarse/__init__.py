"""What Tao and Owhadi (2016) run, as this package runs it: pendula, water, DNA and a body with a dipole."""
