
# In a volume with more than one Python (scripts/toolchain/build.ts puts this behind what every volume has).
VERIFIER_FRONT_PYTHON=3.13

# own_python SELF ARGUMENTS...: becomes Python $VERIFIER_FRONT_PYTHON; as one of no environment it is known by its own folder.
own_python() {
  self=$1
  shift
  unset PYTHONHOME
  [ "$VERIFIER_FRONT_PYTHON" = 3.13 ] || [ "$self" != $RUNTIME/bin/python3 ] || self=$RUNTIME/python$VERIFIER_FRONT_PYTHON/bin/python3
  exec $RUNTIME/lib/ld-linux-x86-64.so.2 --inhibit-cache --library-path $RUNTIME/lib \
    --argv0 "$self" "$RUNTIME/bin/python$VERIFIER_FRONT_PYTHON" "$@"
}
