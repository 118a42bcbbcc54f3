"""A film strip: what ranks did over one axis of time, a lane each, with one rank's reel to step through.

`app/templates/partials/film.html` draws one, `app/static/film.js` moves its playhead. A run's step is made into one by
`app.lab.film`, what a code lab's judge carried from rank to rank by `app.codelabs.film`.
"""
