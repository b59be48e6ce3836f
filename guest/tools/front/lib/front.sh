# What the front's commands share. Read by each of them; busybox runs its own applets, never what PATH offers.
. /opt/evaluator/front/lib/runtime.sh
FRONT=/opt/evaluator/front
PYTHON_PACKAGES=/opt/evaluator/python
# The second life begins with an empty /logs/verifier (spec/03), so neither file is the agent's.
NOTES=/logs/verifier/.evaluator-front
INSTALLED=/logs/verifier/.evaluator-installed
WANTED=
set -f

# refuse CODE WHAT: notes what is not served and ends the command with 97 (docs/verifier-front.md).
refuse() {
  code=$1
  shift
  what=$(printf '%s' "$*" | tr -c ' -~' '?' | cut -c 1-200)
  # Below pytest the caller may be the agent's own program, which a closed network would have refused as well.
  if [ -z "$VERIFIER_FRONT_BELOW_PYTEST" ]; then
    mkdir -p "${NOTES%/*}"
    printf '%s %s\n' "$code" "$what" >>"$NOTES"
  fi
  printf 'verifier front: %s: %s\n' "$code" "$what" >&2
  exit 97
}

# image_command NAME: the image's own command of that name, looked up after the front.
image_command() {
  ifs=$IFS
  IFS=:
  for folder in $PATH; do
    case $folder in "$FRONT" | "$FRONT"/*) continue ;; esac
    if [ -f "$folder/$1" ] && [ -x "$folder/$1" ]; then
      IFS=$ifs
      printf '%s\n' "$folder/$1"
      return 0
    fi
  done
  IFS=$ifs
  return 1
}

image_python() {
  image_command python3 || image_command python || refuse front_no_python "this image has no python3"
}

# pass_through NAME ARGUMENTS...: becomes the image's own command.
pass_through() {
  name=$1
  shift
  command=$(image_command "$name") || refuse front_unserved_command "$name: this image has none"
  exec "$command" "$@"
}

# package_line NAME VERSION: the line of packages.txt that serves it; an empty version takes the first.
package_line() {
  awk -v name="$1" -v version="$2" '
    version != "" && $1 == name "==" version { print; exit }
    version == "" && index($1, name "==") == 1 { print; exit }
  ' "$FRONT/lib/packages.txt"
}

# want SPEC: adds name, name==version or name@version to WANTED; a later version of a name replaces an earlier.
want() {
  version=
  case $1 in
    *==*) version=${1#*==} ;;
    *@*) version=${1#*@} ;;
  esac
  name=${1%%[=@]*}
  case "$name$version" in
    '' | *[!A-Za-z0-9._+-]*) refuse front_unserved_package "$1" ;;
  esac
  name=$(printf '%s' "$name" | tr 'A-Z_.' 'a-z--' | tr -s -)
  line=$(package_line "$name" "$version")
  [ -n "$line" ] || refuse front_unserved_package "$1"
  kept=
  for one in $WANTED; do
    [ "${one%%==*}" = "$name" ] || kept="$kept $one"
  done
  WANTED="$kept ${line%% *}"
}

# want_installed: adds what pip or uv installed earlier in this verification.
want_installed() {
  if [ -f "$INSTALLED" ]; then
    while read -r one; do want "$one"; done <"$INSTALLED"
  fi
}

# remember_installed: keeps WANTED for the commands that follow.
remember_installed() {
  printf '%s\n' $WANTED >>"$INSTALLED"
  printf 'verifier front: installed%s\n' "$WANTED"
}

# want_python VERSION: the volume has one Python; every other is refused, and so is a range that it may not be in.
want_python() {
  case ${1#python} in
    3 | 3.13 | 3.13.*) ;;
    *) refuse front_unserved_python "$1" ;;
  esac
}

# wanted_folders: prints where the wanted packages and what they need lie, as a path list. What was asked for by name
# takes the place of what another package needs: one version of each.
wanted_folders() {
  names=' '
  folders=
  for one in $WANTED; do add_folder "$one"; done
  for one in $WANTED; do
    for key in $(package_line "${one%%==*}" "${one#*==}"); do add_folder "$key"; done
  done
  printf '%s\n' "${folders#:}"
}

# add_folder NAME==VERSION, unless the name is there already; [NAME] is a group of libraries, not a package.
add_folder() {
  case $1 in '['*) return ;; esac
  case $names in *" ${1%%==*} "*) return ;; esac
  names="$names${1%%==*} "
  folder=$PYTHON_PACKAGES/${1%%==*}-${1#*==}
  [ -d "$folder" ] || refuse front_unserved_package "$1"
  folders="$folders:$folder"
}

# below_pytest: what is started from here on is the tests' own business, and finds the image's own commands.
below_pytest() {
  export VERIFIER_FRONT_BELOW_PYTEST=1
  PATH=$(printf '%s' "$PATH" | sed "s|:$FRONT/shell||")
}

# new_environment: as uv makes one: a Python with a folder of its own to install into, first on PATH. Its interpreter is
# the volume's, which sitecustomize.py tells where the wanted packages lie.
new_environment() {
  VERIFIER_FRONT_ENVIRONMENT=$(mktemp -d /.verifier-XXXXXX) || exit 97
  chmod 755 "$VERIFIER_FRONT_ENVIRONMENT"
  mkdir -p "$VERIFIER_FRONT_ENVIRONMENT/bin" "$VERIFIER_FRONT_ENVIRONMENT/lib/python3.13/site-packages"
  printf 'home = %s/bin\nversion = 3.13\n' $RUNTIME >"$VERIFIER_FRONT_ENVIRONMENT/pyvenv.cfg"
  for name in python python3 python3.13; do
    printf '#!/opt/evaluator/busybox sh\n. %s/lib/runtime.sh\nown_python "$0" "$@"\n' "$FRONT" \
      >"$VERIFIER_FRONT_ENVIRONMENT/bin/$name"
    chmod 755 "$VERIFIER_FRONT_ENVIRONMENT/bin/$name"
  done
  PATH=$VERIFIER_FRONT_ENVIRONMENT/bin:$PATH
  export VERIFIER_FRONT_ENVIRONMENT
}

# run_pytest WHERE ARGUMENTS...: -I -S: no PYTHON* variable, no user site, no .pth, no sitecustomize before our own
# first line. WHERE: "environment", as uv makes it: the volume's own Python, with the wanted packages and nothing
# else. "image", "image-module": the image's python3, with what it has installed too.
run_pytest() {
  where=$1
  shift
  folders=$(wanted_folders) || exit 97
  below_pytest
  if [ "$where" = environment ]; then
    export VERIFIER_FRONT_PACKAGES="$folders"
    new_environment
    own_python $RUNTIME/bin/python3 -I -S -B "$FRONT/lib/run_pytest.py" "$where" "$folders" "$@"
  fi
  python=$(image_python) || exit 97
  exec "$python" -I -S -B "$FRONT/lib/run_pytest.py" "$where" "$folders" "$@"
}

# want_list A,B: uv takes several in one word.
want_list() {
  ifs=$IFS
  IFS=,
  set -- $1
  IFS=$ifs
  for spec in "$@"; do want "$spec"; done
}

# want_default NAME: any version of it, unless one was asked for.
want_default() {
  for one in $WANTED; do
    [ "${one%%==*}" != "$1" ] || return 0
  done
  want "$1"
}
