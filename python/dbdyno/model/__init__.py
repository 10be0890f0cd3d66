"""The model room: machines in virtual time, what they are made of and what they give."""
