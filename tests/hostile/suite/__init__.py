"""The suite: starts a real host, lets its processes attack, and looks from outside at what they reached."""
