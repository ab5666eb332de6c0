"""Templates for everyday sentences: people, places, questions, numbers, times, prices, dates and abbreviations."""

NAMES = """Anna Ben Carol David Emma Frank Grace Henry Irene Jack Karen Leo Maria Nathan Olivia Peter Rachel Sam Tina Victor Wendy
Alice Brian Clara Daniel Elena George Hannah Isaac Julia Kevin Laura Martin Nora Oscar Paul Rosa Simon Thomas Vera William
James Mary Robert Linda Michael Susan John Sarah Helen Alex Kate Adam Lucy Eric Diana Philip Jane Mark Ruth Tom""".split()
SURNAMES = """Smith Johnson Brown Miller Davis Wilson Taylor Clark Lewis Walker Young King Wright Hill Green Baker Adams Nelson
Carter Parker Cook Morgan Bell Cooper Ward Brooks Gray Price Wood Ross Foster Hughes Long Butler Fisher""".split()
CITIES = """London Paris Boston Chicago Berlin Madrid Rome Vienna Dublin Oslo Prague Lisbon Tokyo Sydney Toronto Denver Seattle
Austin Dallas Houston Atlanta Portland Geneva Milan Athens Cairo Delhi Moscow Warsaw Boston Amsterdam Brussels""".split()
COUNTRIES = """France Germany Spain Italy Norway Sweden Poland Greece Egypt India China Japan Canada Mexico Brazil Australia
Ireland Scotland England Portugal Austria Switzerland Turkey Kenya Peru Chile America Russia""".split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
RELATIVES = """my mother|my father|my brother|my sister|my uncle|my aunt|my cousin|my grandmother|my grandfather|my friend|my neighbor|
the teacher|the doctor|the nurse|the driver|the farmer|the lawyer|the captain|the waiter|the cook|the manager|the student|the boy|
the girl|the old man|the young woman|the police officer|the engineer|the artist|the singer|the writer|the king|the queen|
a stranger|somebody|everybody|nobody|he|she|our boss|the director|the guide|the baker|the librarian|the mechanic""".replace("\n", "").split("|")
PLURALS = """my parents|the children|the students|the workers|they|we|the tourists|the players|our friends|the neighbors|the soldiers|
the scientists|some people|most people|the visitors|the passengers|you and I|the police|two men|three women""".replace("\n", "").split("|")
THINGS = """the car|the house|the book|a letter|the newspaper|a cup of tea|a glass of water|the window|the door|the computer|a new phone|
the camera|the bicycle|the kitchen|the table|the chair|a picture|the map|the ticket|the suitcase|a sandwich|the bread|some cheese|
the soup|an apple|an orange|the clock|a watch|the lamp|the radio|the piano|the guitar|a song|the story|the truth|the answer|
the question|the money|a present|the umbrella|the coat|a red dress|the shoes|the keys|the garden|a tree|the flowers|the boat|
the bridge|the road|the report|the plan|a mistake|the problem|the machine|the engine|the box|the bag|the bottle|the knife|
the fish|a small dog|the cat|the horse|the birds|the sheep|the train|the bus|the plane|the message|an email|the song|the movie""".replace("\n", "").split("|")
VERBS = """find found finds|see saw sees|take took takes|bring brought brings|buy bought buys|sell sold sells|lose lost loses|
want wanted wants|need needed needs|like liked likes|love loved loves|hate hated hates|remember remembered remembers|
forget forgot forgets|watch watched watches|clean cleaned cleans|repair repaired repairs|break broke breaks|paint painted paints|
carry carried carries|open opened opens|close closed closes|move moved moves|choose chose chooses|describe described describes|
show showed shows|hide hid hides|hold held holds|keep kept keeps|leave left leaves|use used uses|check checked checks|
study studied studies|draw drew draws|touch touched touches|cover covered covers|share shared shares|drop dropped drops""".replace("\n", "")
PLACES = """at home|in the garden|in the kitchen|at the station|at the airport|near the river|in the park|on the beach|at school|
in the office|in the library|at the market|in the city|in the village|on the mountain|by the lake|in the forest|on the train|
in the hospital|at the hotel|in the museum|under the bridge|behind the house|across the street|in front of the church|
on the second floor|next to the bank|at the end of the road|in the middle of the town|outside the theater""".replace("\n", "").split("|")
TIMES = """yesterday|today|tomorrow|last night|this morning|in the evening|every day|once a week|twice a month|last summer|
next winter|after lunch|before dinner|in a few minutes|two hours ago|a long time ago|at midnight|at noon|on the weekend|
all day long|for three weeks|since last year|from time to time|as soon as possible|right now|again""".replace("\n", "").split("|")
ADJECTIVES = """big small old new young long short high low hot cold warm cool dry wet clean dirty quiet loud fast slow easy difficult
cheap expensive happy sad angry tired hungry thirsty busy empty full heavy light dark bright strong weak soft hard sweet sour
beautiful ugly strange famous important interesting boring dangerous safe simple careful friendly honest lazy lucky nervous
proud rich poor serious sick healthy shy smart thick thin useful wonderful terrible perfect broken ready late early""".split()
NOUNS = """weather food music house city road river mountain forest garden school office hotel restaurant movie book story song picture
game idea plan answer question problem reason result work job meeting journey holiday summer winter morning evening night water
coffee soup bread cake fruit car train plane boat bridge door window room kitchen floor wall roof light fire wind rain snow sky
sun moon star sea island beach farm field horse dog cat bird fish tree flower grass stone paper letter box bag shirt coat hat shoe""".split()
ADVERBS = "slowly quickly quietly carefully suddenly easily finally really always never often sometimes usually probably almost".split()
NUMBER_WORDS = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety""".split()
COUNTED = """apples books chairs people houses cars trees birds questions pages minutes hours days weeks months years miles meters
students tickets bottles cups letters boxes rooms tables windows dollars points players songs stories eggs pieces""".split()
FIXED = """Good morning.|Good evening.|Good night.|Hello.|Hi there.|Thank you.|Thanks a lot.|You are welcome.|Excuse me.|I am sorry.|
No problem.|See you later.|See you tomorrow.|How are you?|I am fine, thank you.|Nice to meet you.|What is your name?|Where are you from?|
Yes.|No.|Maybe.|Of course.|Please.|Come in.|Sit down, please.|Wait a minute.|Let me see.|I do not know.|I think so.|Are you sure?|
That is right.|That is wrong.|Be careful!|Hurry up!|Help me, please.|What happened?|Why not?|Who is there?|Happy birthday!|Good luck!|
Welcome home.|Have a nice day.|Hello, world!|Hello, my name is Drama.|This is a test.|Testing, one, two, three.|Once upon a time.|
The quick brown fox jumps over the lazy dog.|She sells sea shells by the sea shore.|Stop!|Go away!|Listen to me.|Okay.|All right.""".replace("\n", "").split("|")


# Triples (plain, past, third person) of transitive verbs.
FORMS = [tuple(part.split()) for part in VERBS.split("|")]
FORMS += [tuple("%s %s" % (form, word) for form in forms.split()) for forms, word in (
    ("pay paid pays", "for"), ("look looked looks", "at"), ("ask asked asks", "about"), ("wait waited waits", "for"),
    ("think thought thinks", "about"), ("talk talked talks", "about"))]


def upper_first(text):
    return text[:1].upper() + text[1:]


def clock(r):
    """A time of day in one of the usual spellings."""
    hour, minute = r.randint(1, 12), r.choice([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, r.randint(1, 59)])
    return r.choice(["%d:%02d pm", "%d:%02d am", "%d:%02d", "%d:%02d p.m.", "%d:%02d PM", "%d:%02d AM"]) % (hour, minute) if minute else \
        r.choice(["%d o'clock" % hour, "%d pm" % hour, "%d am" % hour, "%d:00" % hour])


def price(r):
    """An amount of money."""
    return r.choice(["$%d.%02d" % (r.randint(1, 199), r.randint(1, 99)), "$%d" % r.choice([r.randint(1, 99), r.randint(100, 999), 1000 * r.randint(1, 9)]),
                     "%d dollars" % r.randint(2, 500), "%d cents" % r.randint(2, 99), "$%d.50" % r.randint(1, 40), "$%d.99" % r.randint(1, 60)])


def year(r):
    return str(r.choice([r.randint(1900, 2030), r.randint(1500, 1899), r.randint(2000, 2030)]))


def date(r):
    """A date with or without a year."""
    month, day = r.choice(MONTHS), r.randint(1, 31)
    return r.choice(["%s %d" % (month, day), "%s %d, %s" % (month, day, year(r)), "the %s of %s" % (ordinal(day), month), "%s %s" % (month, year(r)),
                     "%s %s" % (month, ordinal(day))])


def ordinal(n):
    return "%d%s" % (n, "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th"))


def number(r):
    """A count, decimal, percentage or number word."""
    return r.choice([str(r.randint(2, 20)), str(r.randint(21, 99)), str(r.randint(100, 999)), str(r.randint(1000, 9999)), "%d,%03d" % (r.randint(1, 99), r.randint(0, 999)),
                     "%d.%d" % (r.randint(0, 99), r.randint(1, 9)), r.choice(NUMBER_WORDS), "%s-%s" % (r.choice(NUMBER_WORDS[19:]), r.choice(NUMBER_WORDS[:9])),
                     "%s hundred" % r.choice(NUMBER_WORDS[:9]), "%s thousand" % r.choice(NUMBER_WORDS[:12])])


def figure(r):
    """A figure with a comma, round ones as often as others."""
    thousands = r.choice([r.randint(1, 9), r.randint(1, 9), r.randint(10, 99), r.randint(100, 999)])
    return "%d,%03d" % (thousands, r.choice([0, 50 * r.randint(1, 19), r.randint(1, 999)]))


def share(r):
    """A percentage in figures."""
    return r.choice(["%d%%" % r.randint(1, 100), "%d%%" % (5 * r.randint(1, 20)), "%d.%d%%" % (r.randint(0, 30), r.randint(1, 9))])


def figures(r):
    """One sentence with long figures or percentages."""
    return r.choice([
        lambda: "There are %s %s %s." % (figure(r), r.choice(COUNTED), r.choice(PLACES)), lambda: "We sold %s %s in %s." % (figure(r), r.choice(COUNTED), year(r)),
        lambda: "About %s people live in %s." % (figure(r), r.choice(CITIES)), lambda: "It costs $%s." % figure(r), lambda: "The total was %s." % figure(r),
        lambda: "%s %s were sold." % (figure(r), r.choice(COUNTED)), lambda: "%s of the %s are %s." % (share(r), r.choice(COUNTED), r.choice(ADJECTIVES)),
        lambda: "Prices rose by %s in %s." % (share(r), r.choice(MONTHS)), lambda: "Only %s of them came." % share(r), lambda: "You get %s off." % share(r),
        lambda: "The %s lost %s of its value." % (r.choice(NOUNS), share(r)), lambda: "From %s to %s %s." % (figure(r), figure(r), r.choice(COUNTED)),
        lambda: "Sales went up %s, to %s %s." % (share(r), figure(r), r.choice(COUNTED)), lambda: "The hall has %s %s, and %s are %s." % (figure(r), r.choice(COUNTED), share(r), r.choice(ADJECTIVES)),
        lambda: "It is %s miles to %s." % (figure(r), r.choice(CITIES)), lambda: "%s won %s votes, or %s." % (r.choice(NAMES), figure(r), share(r))])()


def numeric(r):
    """One sentence with figures or an abbreviation."""
    name, place = r.choice(NAMES), r.choice(PLACES)
    return r.choice([
        lambda: "It was %s when %s %s %s." % (clock(r), r.choice(RELATIVES), r.choice(FORMS)[1], r.choice(THINGS)),
        lambda: "The train leaves at %s." % clock(r), lambda: "The meeting starts at %s on %s." % (clock(r), r.choice(DAYS)),
        lambda: "Please call me at %s." % clock(r), lambda: "Is it %s already?" % clock(r), lambda: "We will arrive in %s at %s." % (r.choice(CITIES), clock(r)),
        lambda: "%s costs %s." % (upper_first(r.choice(THINGS)), price(r)), lambda: "I paid %s for %s." % (price(r), r.choice(THINGS)),
        lambda: "That will be %s, please." % price(r), lambda: "%s owes me %s." % (name, price(r)), lambda: "Can you lend me %s?" % price(r),
        lambda: "In %s, %s moved to %s." % (year(r), name, r.choice(CITIES)), lambda: "It happened in %s." % year(r),
        lambda: "%s was born in %s in %s." % (name, r.choice(COUNTRIES), year(r)), lambda: "The year %s was very %s." % (year(r), r.choice(ADJECTIVES)),
        lambda: "The building was finished in %s and sold in %s." % (year(r), year(r)), lambda: "Back in the %d0s, nobody cared." % r.randint(190, 199),
        lambda: "My birthday is on %s." % date(r), lambda: "Today is %s, %s." % (r.choice(DAYS), date(r)), lambda: "The letter was sent on %s." % date(r),
        lambda: "There are %s %s %s." % (number(r), r.choice(COUNTED), place), lambda: "We counted %s %s." % (number(r), r.choice(COUNTED)),
        lambda: "About %d percent of the %s are %s." % (r.randint(1, 100), r.choice(COUNTED), r.choice(ADJECTIVES)), lambda: "Prices rose by %d%% in %s." % (r.randint(1, 99), year(r)),
        lambda: "Open the book on page %d." % r.randint(1, 400), lambda: "Turn to chapter %d, page %d." % (r.randint(1, 30), r.randint(1, 400)),
        lambda: "It is %d degrees outside." % r.randint(2, 99), lambda: "The answer is %s." % number(r), lambda: "My number is %03d-%04d." % (r.randint(200, 999), r.randint(0, 9999)),
        lambda: "She finished in %s place." % ordinal(r.randint(1, 40)), lambda: "The %s of %s is a holiday." % (ordinal(r.randint(1, 31)), r.choice(MONTHS)),
        lambda: "Dr. %s will see you at %s." % (r.choice(SURNAMES), clock(r)), lambda: "Mr. %s and Mrs. %s live at %d %s St." % (r.choice(SURNAMES), r.choice(SURNAMES), r.randint(1, 999), r.choice(SURNAMES)),
        lambda: "Ms. %s paid %s in %s." % (r.choice(SURNAMES), price(r), r.choice(MONTHS)), lambda: "Prof. %s teaches in room %d." % (r.choice(SURNAMES), r.randint(1, 499)),
        lambda: "Bring apples, bread, milk, etc.", lambda: "The score was %d to %d." % (r.randint(0, 120), r.randint(0, 120)),
        lambda: "%d plus %d is %d." % (lambda a, b: (a, b, a + b))(r.randint(1, 60), r.randint(1, 60)), lambda: "%d, %d, %d, %d." % tuple(r.randint(1, 99) for _ in range(4)),
        lambda: "Flight %d to %s departs at %s." % (r.randint(10, 999), r.choice(CITIES), clock(r)), lambda: "Version %d.%d was released on %s." % (r.randint(1, 12), r.randint(0, 9), date(r)),
        lambda: "The U.S. team won %d medals." % r.randint(2, 99), lambda: "He is %d years old." % r.randint(2, 99), lambda: "It weighs %d.%d pounds." % (r.randint(1, 99), r.randint(1, 9)),
        lambda: "%s lives at %d %s Avenue." % (name, r.randint(1, 999), r.choice(SURNAMES)), lambda: "Only %d of the %d %s came." % (r.randint(2, 20), r.randint(21, 90), r.choice(COUNTED)),
    ])()


def plain(r):
    """One everyday sentence without figures."""
    one, many, thing, place, time = r.choice(RELATIVES), r.choice(PLURALS), r.choice(THINGS), r.choice(PLACES), r.choice(TIMES)
    verb, name, a, b = r.choice(FORMS), r.choice(NAMES), r.choice(ADJECTIVES), r.choice(ADJECTIVES)
    noun = r.choice(NOUNS)
    return upper_first(r.choice([
        lambda: "%s %s %s %s." % (one, verb[1], thing, place), lambda: "%s %s %s %s." % (one, verb[2], thing, time), lambda: "%s %s %s %s." % (many, verb[1], thing, time),
        lambda: "%s %s %s, and %s %s %s." % (one, verb[1], thing, r.choice(RELATIVES), r.choice(FORMS)[1], r.choice(THINGS)),
        lambda: "%s did not %s %s %s." % (one, verb[0], thing, time), lambda: "do you %s %s?" % (verb[0], thing), lambda: "why did %s %s %s?" % (one, verb[0], thing),
        lambda: "where did %s %s %s %s?" % (many, verb[0], thing, time), lambda: "can you %s %s, please?" % (verb[0], thing), lambda: "when will %s %s %s?" % (name, verb[0], thing),
        lambda: "%s said that %s was too %s." % (name, thing, a), lambda: "I think the %s is %s and %s." % (noun, a, b), lambda: "the %s %s was %s, but the %s was %s." % (a, noun, b, r.choice(NOUNS), r.choice(ADJECTIVES)),
        lambda: "if you %s %s, %s will be %s." % (verb[0], thing, one, a), lambda: "when %s came home, %s was %s." % (one, thing, a), lambda: "%s %s %s because it was %s." % (name, verb[1], thing, a),
        lambda: "please %s %s before you go." % (verb[0], thing), lambda: "I would like to %s %s %s." % (verb[0], thing, place),
        lambda: "there is a %s %s %s." % (a, noun, place), lambda: "there was no %s %s." % (noun, place), lambda: "what a %s %s!" % (a, noun), lambda: "is the %s %s or %s?" % (noun, a, b),
        lambda: "%s and %s went to %s %s." % (name, r.choice(NAMES), r.choice(CITIES), time), lambda: "have you ever been to %s?" % r.choice(COUNTRIES),
        lambda: "%s lives in %s, but %s comes from %s." % (name, r.choice(CITIES), r.choice(NAMES), r.choice(COUNTRIES)), lambda: "we %s %s %s %s." % (verb[1], thing, place, time),
        lambda: "on %s, %s %s %s." % (r.choice(DAYS), one, verb[1], thing), lambda: "%s %s opened the door and saw a %s %s." % (one, r.choice(ADVERBS), a, noun),
        lambda: "don't %s %s!" % (verb[0], thing), lambda: "I can't %s %s now." % (verb[0], thing), lambda: "it's a %s %s, isn't it?" % (a, noun), lambda: "we'll %s %s %s." % (verb[0], thing, time),
        lambda: "they're going to %s %s." % (verb[0], thing), lambda: "she's %s, and he's %s." % (a, b), lambda: "I've never seen such a %s %s." % (a, noun), lambda: "you should %s %s %s." % (verb[0], thing, time),
        lambda: "%s asked: \"Where is %s?\"" % (name, thing), lambda: "the %s, the %s, and the %s were %s." % (noun, r.choice(NOUNS), r.choice(NOUNS), a), lambda: "it's %s; the %s is %s." % (a, noun, b),
        lambda: "%s's %s is more %s than %s's." % (name, noun, a, r.choice(NAMES)), lambda: "how %s is the %s %s?" % (a, noun, place), lambda: "who %s %s %s?" % (verb[1], thing, place),
        lambda: "the %s %s %s %s %s." % (a, noun, r.choice(["was", "is", "seemed", "became", "looked"]), b, time), lambda: "this %s is for %s, and that %s is for %s." % (noun, name, r.choice(NOUNS), r.choice(NAMES)),
    ])())
