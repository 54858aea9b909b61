"""The application: `commands`, `tables` in and out, and the `report`.

It stands on the estimators, and on few other names of the package. This is all that it imports (a test compares):

    givens                     __version__, FactorRotation, ICA, Result, SparsePCA, SphericalMixture, StreamingSparsePCA,
                               TopicModel, decompose, progress, sparse_pca_path
    givens.data.passes         ClusterError, computed
    givens.kernels             compile
    givens.metrics             adjusted_from_gram, largest_correlation
    givens.mne.recording       SUFFIXES, read_recording
    givens.sparse_pca.options  check_sparsity, counts_of, penalty_and_number
    givens.support.arguments   LARGEST_COUNT, DominantFeatureWarning, are, dense, one_entry_each, warn_of_dominant_feature
    givens.support.imports     require
    givens.support.signals     uninterrupted
    givens.support.archive     part_of, remove_leftovers
"""
