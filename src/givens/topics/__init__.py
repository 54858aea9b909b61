"""Topics of documents: latent Dirichlet allocation from moments, refined by variational steps.

| module | what |
|---|---|
| `documents` | word counts, checked and read in chunks of a fixed number of documents |
| `word_moments` | moments of the words up to the third, on a few axes, and topics from them |
| `variational` | refinement of topics by passes over the documents, with a prior of their shares |
| `coherence` | normalised pointwise mutual information of a topic's words |
| `estimator` | `TopicModel` |
"""
