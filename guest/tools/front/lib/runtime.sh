# The volume's own programs: their loader and libraries are the volume's too, whatever the image has or lacks.
RUNTIME=/opt/evaluator/runtime

# own NAME ARGUMENTS...: becomes the volume's program NAME, which knows itself by the front's path.
own() {
  name=$1
  shift
  exec $RUNTIME/lib/ld-linux-x86-64.so.2 --inhibit-cache --library-path $RUNTIME/lib \
    --argv0 "/opt/evaluator/front/$name" "$RUNTIME/bin/$name" "$@"
}

# own_python SELF ARGUMENTS...: becomes the volume's Python, known to itself as SELF, where it looks for its library.
own_python() {
  self=$1
  shift
  unset PYTHONHOME
  exec $RUNTIME/lib/ld-linux-x86-64.so.2 --inhibit-cache --library-path $RUNTIME/lib \
    --argv0 "$self" $RUNTIME/bin/python3.13 "$@"
}
