"""Operations for a code repository whose jobs check configs and launch, stop and watch runs."""
