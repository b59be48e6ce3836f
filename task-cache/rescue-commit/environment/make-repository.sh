set -e
export GIT_AUTHOR_NAME=Maren GIT_AUTHOR_EMAIL=maren@example.org
export GIT_COMMITTER_NAME=Maren GIT_COMMITTER_EMAIL=maren@example.org

commit() {
  git add -A
  GIT_AUTHOR_DATE="$1" GIT_COMMITTER_DATE="$1" git commit -q -m "$2"
}

git init -q -b main /app/notes
cd /app/notes
git config user.name "$GIT_AUTHOR_NAME"
git config user.email "$GIT_AUTHOR_EMAIL"

echo '# Island notes' > README.md
commit '2024-03-01T09:00:00Z' 'Begin the notes'
printf 'kale\nleeks\n' > garden.txt
commit '2024-03-02T09:00:00Z' 'List the garden'
printf 'kale\nleeks\nroses\n' > garden.txt
printf 'noon: post\ndusk: ferry, late\n' > times.txt
commit '2024-03-03T09:00:00Z' 'Add the roses and the times of the day'
git reset -q --hard HEAD~1
