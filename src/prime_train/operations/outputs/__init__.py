"""Operations on what a run produced besides checkpoints: the files that its config names, its logs and its metrics, as stored in the
bucket."""
