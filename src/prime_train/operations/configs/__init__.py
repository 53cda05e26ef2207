"""Operations on configs: write a new one, check, review and explain it, and keep its versions."""
