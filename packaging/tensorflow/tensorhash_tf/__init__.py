"""The TensorFlow ops of tensorhash, one library per minor version of TensorFlow."""
