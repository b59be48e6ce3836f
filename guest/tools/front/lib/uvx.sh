# uvx and `uv tool run`: a tool in an environment of its own.
tool_run() {
  from=
  while [ $# -gt 0 ]; do
    case $1 in
      -p | --python) want_python "$2" && shift ;;
      -p?*) want_python "${1#-p}" ;;
      --python=*) want_python "${1#*=}" ;;
      -w | --with) want_list "$2" && shift ;;
      -w?*) want_list "${1#-w}" ;;
      --with=*) want_list "${1#*=}" ;;
      --from) from=$2 && shift ;;
      --from=*) from=${1#*=} ;;
      --index | --index-strategy | --index-url | --default-index | --extra-index-url) shift ;;
      --index*=* | --default-index=* | --extra-index-url=*) ;;
      -q | -v | -n | --quiet | --verbose | --isolated | --no-cache | --no-config | --no-progress | --offline | --refresh) ;;
      -*) refuse front_unserved_option "uvx $1" ;;
      *) break ;;
    esac
    [ $# -eq 0 ] || shift
  done
  case ${1-} in
    pytest | pytest@* | pytest==*) ;;
    *) refuse front_unserved_command "uvx ${1-}" ;;
  esac
  [ -z "$from" ] || want "$from"
  case $1 in
    pytest) want_default pytest ;;
    *) want "$1" ;;
  esac
  shift
  run_pytest environment "$@"
}
