# Stands for uv's installer: test scripts read $HOME/.local/bin/env next; uv itself is already on PATH.
B=/opt/evaluator/busybox
for folder in "$HOME/.local" "$HOME/.local/bin"; do
  if [ -L "$folder" ] || [ ! -d "$folder" ]; then
    $B rm -rf "$folder"
    $B mkdir -p "$folder"
  fi
done
$B rm -rf "$HOME/.local/bin/env"
# The real file puts $HOME/.local/bin first on PATH, where an agent may have left a uvx of its own.
echo '# uv is on PATH' >"$HOME/.local/bin/env"
