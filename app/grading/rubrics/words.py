"""Word lists: what a typo may have hit, its innocent neighbours, and the small words that make a sentence."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of the field that a typo may have hit.
VOCABULARY = _words(
    """
    accumulate accumulation accuracy activation activations allocator alternative alternatives always amdahl
    asynchronous attention automatic automatically background backup backward balance bandwidth baseline batch
    batches because before behind benchmark biggest bottleneck bottlenecks breakdown bubble bubbles bucket buckets
    budget buffer bytes candidate candidates checking checkpoint checkpointing checkpoints chinchilla choose
    cluster collective collectives column columns combine communicate communicates communication compare compress
    compressed compression compute computing conditional configuration configurations context converge convergence
    copies corruption crash critical dataloader deadlock decrease depends divide divided embedding embeddings
    empirical enumerate epoch epochs error exception expected exposed factors failure failures fallback feedback
    first forward fragmentation gather gathered global goodput gradient gradients hanging hidden hierarchical
    imbalance imbalanced increase inference interconnect interleave interleaved interleaving interval larger
    latencies latency layers limited linear linearly logits lossless matrices matrix measure measured memory
    message messages microbatch microbatches missing mixed model moments momentum network offload offloading
    optimiser optimizer optimizers overhead overlap overlapped parallel parallelism parameter parameters partition
    partitions pipeline pipelines policy power precision prefetch prefetching profile profiler profiling
    proportional quarter random reasons rebalance recomputation recompute recorder reduce redundancy regression
    repeat replace replica replicas replicate replicated replicates reproduce restart restarts resume rollback
    sampler sequence sequences serving shapes shard sharded sharding shards shorter silent single slowest small
    smaller snapshot spares split splits stacks stage stages straggler stragglers strong synchronise synchronize
    synchronous tensor throughput timeout tokens topology traffic training utilisation utilization vocabulary
    weights workers wrapping
    """
)

# Words a letter away from one of these, which are no typos.
NEIGHBOURS = _words(
    """
    again batched bites cancel chance change choice chose chosen clone close closer clusters coarse coming common
    compete complete comprise content course defend depend divine expect expert exposes fact factor faster father
    fault faulty files fires fist fists fixes frees fresh gated given goal grade greater hatch height heights
    hiding hitch invite ladder large laser later latter lattice lawyers layer letter linger loader longer loses
    losses lossy match matches mattress member mitigate mode modes nodes notes older order others outage parable
    parallelise part party patch piece pipes place places plan plane played point pointer policies posing price
    print prints probe process profit quiet quite quote racks rails raise range ranges ranked ranks rather reach
    react read ready reason record reduced repair replay reply report rescue reserve resort rest rooms roots round
    running sacred sample samples saves scale scaled scaler scales score second seconds sense serve served server
    seven shakes shape shaped share shared shares sharp ship short shorten shot show sides simpler singer sites
    slice slide slowed slower smell snap sold solo some south space spaced spare sparse speed spend spill stair
    stale stall start started state stated states stats steps sticks still stock stops storage store stored story
    straggle strange string stuck study sum swap take taken takes talks target tends test tests text there these
    thing three throughout tiers tile time timed times token total trace traced traces track trade trail train
    trained trains trees trend tries turn type types under unit units value values wait waits wants waste weigh
    weight where while whole whose wide width wrap wrapped write writer writes wrong
    """
)

# Words that are hardly in a mere list of terms: small ones, and plain verbs.
FUNCTION_WORDS = _words(
    """
    a about after all also am an and any are as at back be because been before being between both but by can check
    checks choose could did divide divided divides do does doing down each else even ever every few first fit fits for
    from get gets give gives go goes grow grows had has have having he her here his hold holds how i if in into is
    it its just keep keeps let like look make makes many may me means might more most move moved moves much must
    my need needs no nor not now of off on once one only onto or other our out over own per pick picks put run
    runs same say says see send sends sent she should since so some start starts still such take takes than that
    the their them then there these they this those through to too under until up us use used uses using very via
    wait waits want was we were what when where which while who why will with within without would yet you your
    """
)

# With one of these a row of terms becomes a sentence that still says nothing about them.
VACUOUS = _words(
    """
    aspect aspects concepts consider considered considerations crucial discuss essential familiar important keywords
    discussed matter matters mention mentioned relevant topics
    """
)

# With one of these fewer terms make such a row.
MENTIONING = _words("aspects consider considered considerations discuss discussed keywords mentioned topics")

# A sentence with one of these says more than that something matters.
REASONS = _words(
    """
    = → because so since therefore hence if unless while whereas but then which grows falls
    """
)

# Said with one of these and with neither a number nor a reason, a statement commits to nothing.
HEDGES = (
    "pros and cons", "some cases", "some situations", "various", "somewhat", "right balance", "balance between",
    "best practice", "best practices", "as low as possible", "whichever", "usually combine", "some truth",
    "heuristics", "different strategies", "many techniques", "many ways", "several ways", "as reasonable",
    "should be considered",
)  # fmt: skip

# Said with one of these and without a number, a statement leaves open what is done, to what end, or what it hangs on:
# it may be true of anything, and defines nothing.
LEAVES_OPEN = (
    "a bit", "a lot", "and so on", "anything", "be careful", "benchmark", "carefully", "etc", "everything",
    "experiment", "help", "helps", "improve", "investigate", "it depends", "matter", "matters", "normal", "optimise",
    "optimize", "play a role", "plays a role", "properly", "regularly", "somehow", "something", "stuff", "things",
    "tricky", "try", "tune", "tuning", "works best",
)  # fmt: skip
