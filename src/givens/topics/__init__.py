"""Topics of documents: latent Dirichlet allocation from moments, refined by variational steps.

| module | what |
|---|---|
| `documents` | word counts, checked and read in chunks of a fixed number of documents |
| `word_moments` | moments of the words up to the third, on a few axes: sums over documents |
| `from_moments` | from moments to topics: whitening, α0, decomposition |
| `priors` | the topic shares of a document: a Dirichlet distribution, or one topic each |
| `variational` | refinement of topics by variational passes over the documents |
| `coherence` | normalised pointwise mutual information of a topic's words |
| `estimator` | `TopicModel` |
"""
