"""Topics of documents: latent Dirichlet allocation from moments, refined by variational steps.

| module | what |
|---|---|
| `word_moments` | moments of the words up to the third, on a few axes, topics from them, and their coherence |
| `variational` | refinement of topics by passes over the documents, with a prior of their shares |
| `estimator` | `TopicModel` |
"""
