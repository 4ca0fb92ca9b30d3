"""What a Context is made of: who has run away, which triangles are needles, work, worksheets, minimisation."""
