"""What a training plan holds, moves and takes: one engine for every framework, which differ in `profiles` alone.

`plan` resolves a request, `placement` deals layers to stages, `layer` says what one layer computes and keeps, `memory`,
`communication` and `timing` add up. Fitted numbers live in `constants` and nowhere else.
"""
