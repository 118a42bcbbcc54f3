"""How much an imported file may hold. Whatever is larger is refused before it takes memory or time."""

MB = 10**6

UPLOAD_BYTES = 200 * MB
COLLECTION_BYTES = 300 * MB  # unpacked; a collection of 20,000 long notes takes 60
DIRECTORY_BYTES = 8 * MB  # the list of files in a zip: about 100,000 of them
TEXT_BYTES = 20 * MB
CARD_FILE_BYTES = 200_000
NOTES = 20_000
ANSWERS = 2_000_000
FIELD_CHARACTERS = 100_000
SECONDS = 120.0  # of this thread's own work; 20,000 notes full of formulas take a third of it
REASONS_KEPT = 100  # how many of the notes left out a report names; it counts them all
