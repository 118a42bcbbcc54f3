"""How much an imported file may hold. Whatever is larger is refused before it takes memory or time."""

MB = 10**6

UPLOAD_BYTES = 200 * MB
COLLECTION_BYTES = 300 * MB  # unpacked; a collection of 20,000 long notes takes 60
ROW_BYTES = 4 * MB  # one note, with pictures written into its text
HEAD_BYTES = 8 * MB  # note types, decks and settings, of which Anki's are some 100,000
ROWS = 10_000  # of note types, their fields and templates, and decks, each
MOST_CHARACTERS = 100 * MB  # of all cards of a file together; 20,000 long ones have 30
DIRECTORY_BYTES = 8 * MB  # the list of files in a zip: about 100,000 of them
TEXT_BYTES = 20 * MB
CARD_FILE_BYTES = 200_000
NOTES = 20_000
ANSWERS = 2_000_000
FIELD_CHARACTERS = 100_000
SECONDS = 120.0  # of this thread's own work; 20,000 notes full of formulas take a third of it
REASONS_KEPT = 100  # how many of the notes left out a report names; it counts them all

# Of the process an import has to itself. It ends itself at each of them, whatever it is doing just then.
CHILD_CPU_SECONDS = 150
CHILD_DEADLINE_SECONDS = 600  # on a busy machine a good file must not fail
CHILD_DATA_BYTES = 768 * MB  # memory of its own; the largest good file takes half
CHILD_ADDRESS_BYTES = 2_048 * MB
CHILD_FILE_BYTES = 4_096 * MB  # the database is among what it writes
