"""The paper's bounded decomposition: lines under and over every k(., z_i)."""
