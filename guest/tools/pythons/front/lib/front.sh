
# In a volume with more than one Python (scripts/toolchain/build.ts puts this behind what every volume has): each has
# packages of its own, and an environment that `uv venv` made has the Python that was asked for.
# ENVIRONMENTS: VERSION FOLDER, one a line; of a folder that was made twice the last counts.
ENVIRONMENTS=/logs/verifier/.evaluator-environments

# use_python VERSION: the Python of what follows in this command.
use_python() {
  [ "$1" = "$VERIFIER_FRONT_PYTHON" ] || [ -z "$WANTED" ] || refuse front_unserved_option "Python $1 behind packages"
  VERIFIER_FRONT_PYTHON=$1
  case $1 in
    3.13) INSTALLED=/logs/verifier/.evaluator-installed ;;
    *) INSTALLED=/logs/verifier/.evaluator-installed-$1 ;;
  esac
}

# want_python VERSION: one of the volume's, as Python's own version or without its last number.
want_python() {
  case ${1#python} in
    3 | 3.13 | 3.13.*) use_python 3.13 ;;
    *)
      found=$(awk -v wanted="${1#python}" '$1 == wanted || $2 == wanted { print $1; exit }' "$FRONT/lib/pythons.txt")
      # A pin is for commands to come, which would not know of it.
      [ -n "$found" ] && [ "${action-} ${second-}" != 'python pin' ] || refuse front_unserved_python "$1"
      use_python "$found"
      ;;
  esac
}

# environment_python FOLDER: the Python that `uv venv` made it with; 3.13 for any other folder.
environment_python() {
  made=3.13
  if [ -f "$ENVIRONMENTS" ]; then
    while read -r python folder; do
      [ "$folder" != "$1" ] || made=$python
    done <"$ENVIRONMENTS"
  fi
  printf '%s\n' "$made"
}

# remember_environment FOLDER: its `activate` says where it is, as uv's does.
remember_environment() {
  place=$(cd "$1" && pwd) || exit 97
  case $place in *[!A-Za-z0-9._/+-]*) refuse front_unserved_option "uv venv $1" ;; esac
  printf '%s %s\n' "$VERIFIER_FRONT_PYTHON" "$place" >>"$ENVIRONMENTS"
  printf 'VIRTUAL_ENV=%s\nexport VIRTUAL_ENV\ndeactivate() { unset VIRTUAL_ENV; }\n' "$place" >>"$1/bin/activate"
}

# package_line NAME VERSION: the line that serves it in the table of the Python in use.
package_line() {
  table=packages.txt
  [ "$VERIFIER_FRONT_PYTHON" = 3.13 ] || table=packages-$VERIFIER_FRONT_PYTHON.txt
  awk -v name="$1" -v version="$2" '
    version != "" && $1 == name "==" version { print; exit }
    version == "" && index($1, name "==") == 1 { print; exit }
  ' "$FRONT/lib/$table"
}

# add_folder NAME==VERSION: compiled for the Python in use, or for any.
add_folder() {
  case $1 in '['*) return ;; esac
  case $names in *" ${1%%==*} "*) return ;; esac
  names="$names${1%%==*} "
  for place in "$PYTHON_PACKAGES$VERIFIER_FRONT_PYTHON" "$PYTHON_PACKAGES"; do
    folder=$place/${1%%==*}-${1#*==}
    if [ -d "$folder" ]; then
      folders="$folders:$folder"
      return
    fi
  done
  refuse front_unserved_package "$1"
}

# new_environment: of the Python in use. run_pytest.py learns of its folder as of one more package.
new_environment() {
  python=$VERIFIER_FRONT_PYTHON
  home=$RUNTIME/python$python/bin
  [ "$python" != 3.13 ] || home=$RUNTIME/bin
  VERIFIER_FRONT_ENVIRONMENT=$(mktemp -d /.verifier-XXXXXX) || exit 97
  bin=$VERIFIER_FRONT_ENVIRONMENT/bin
  site=$VERIFIER_FRONT_ENVIRONMENT/lib/python$python/site-packages
  chmod 755 "$VERIFIER_FRONT_ENVIRONMENT"
  mkdir -p "$bin" "$site"
  printf 'home = %s\nversion = %s\n' "$home" "$python" >"$VERIFIER_FRONT_ENVIRONMENT/pyvenv.cfg"
  for name in python python3 "python$python"; do
    printf '#!/opt/evaluator/busybox sh\n. %s/lib/runtime.sh\nVERIFIER_FRONT_PYTHON=%s\nown_python "$0" "$@"\n' \
      "$FRONT" "$python" >"$bin/$name"
    chmod 755 "$bin/$name"
  done
  folders=$folders:$site
  PATH=$bin:$PATH
  export VERIFIER_FRONT_ENVIRONMENT
}

# Tools have environments of their own, and a new one has the Python that it is asked for. Below pytest nothing changes.
case "${0##*/} ${1-}" in
  'uv tool' | 'uv venv' | 'uv python') ;;
  'uv '*)
    use_python "$(environment_python "${VIRTUAL_ENV:-$PWD/.venv}")"
    case "$VERIFIER_FRONT_PYTHON ${1-}" in
      '3.13 '* | *' run' | *' pip') ;;
      *) refuse front_unserved_command "uv ${1-} in an environment of Python $VERIFIER_FRONT_PYTHON" ;;
    esac
    ;;
  'python '* | 'python3 '* | 'pip '* | 'pip3 '* | 'pytest '*)
    if [ -n "${VIRTUAL_ENV-}" ] && [ -z "$VERIFIER_FRONT_ENVIRONMENT" ]; then
      active=$(environment_python "$VIRTUAL_ENV")
      [ "$active" = 3.13 ] || refuse front_unserved_command "${0##*/} in an environment of Python $active"
    fi
    ;;
esac
