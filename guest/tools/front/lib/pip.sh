# pip: `install` of packages that the tools volume holds; all else is the image's own pip, which needs no network.
. /opt/evaluator/front/lib/url.sh

# pip_install ARGUMENTS...: returns 1 when the request is for this machine's own files or index.
pip_install() {
  asked=
  while [ $# -gt 0 ]; do
    case $1 in
      -i | --index-url | --extra-index-url | -f | --find-links)
        ! looks_like_url "${2-}" || is_local "$2" || refuse front_unserved_url "$2"
        return 1
        ;;
      --index-url=* | --extra-index-url=* | --find-links=*)
        ! looks_like_url "${1#*=}" || is_local "${1#*=}" || refuse front_unserved_url "${1#*=}"
        return 1
        ;;
      --no-index) return 1 ;;
      --root-user-action | --progress-bar | --timeout | --retries) shift ;;
      --root-user-action=* | --progress-bar=* | --timeout=* | --retries=*) ;;
      -q | -qq | -v | -U | --quiet | --upgrade | --user | --no-input | --no-cache-dir | --break-system-packages) ;;
      --no-warn-script-location | --disable-pip-version-check | --ignore-installed | --force-reinstall) ;;
      -*) refuse front_unserved_option "pip install $1" ;;
      . | ./* | /*) return 1 ;;
      *) asked="$asked $1" ;;
    esac
    [ $# -eq 0 ] || shift
  done
  for one in $asked; do want "$one"; done
  remember_installed
}

# pip_main PYTHON ARGUMENTS...
pip_main() {
  python=$1
  shift
  if [ "${1-}" = install ]; then
    if (shift && pip_install "$@"); then exit 0; else code=$?; fi
    [ "$code" = 1 ] || exit "$code"
  fi
  exec "$python" -m pip "$@"
}
