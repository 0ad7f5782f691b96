"""Files whose change reaches further than its diff shows: one table of classes, by path."""

from __future__ import annotations

import fnmatch
import re
from types import MappingProxyType

from essentials.patterns import late
from essentials.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final


def _matcher(*globs: str) -> re.Pattern[str]:
    """A pattern for paths whose end, from any folder on, matches one of *globs*; a star passes over slashes."""
    return late("(?:.*/)?(?:" + "|".join(fnmatch.translate(glob) for glob in globs) + ")", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of files whose change has a reach that its diff does not show."""

    message: str
    paths: re.Pattern[str] = field(repr=False)


# M13. Patterns are of lower-case paths.
ELEVATED: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "ci": Kind("It changes what continuous integration runs.", _matcher(
            ".github/workflows/*", ".github/actions/*", "action.yml", "action.yaml", ".gitlab-ci.yml", ".gitlab/*",
            "jenkinsfile*", ".circleci/*", ".travis.yml", "azure-pipelines*.yml", ".buildkite/*", ".drone.yml",
            "appveyor.yml", "bitbucket-pipelines.yml", ".woodpecker*", ".forgejo/*", ".gitea/*", ".teamcity/*",
            "cloudbuild.y*ml", ".ci/*",
        )),
        "hooks": Kind("It changes hooks that git runs.", _matcher(
            ".husky/*", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.y*ml", ".lefthook/*",
            ".githooks/*", "githooks/*", ".lintstagedrc*", "lint-staged.config.*", ".huskyrc*", ".overcommit.yml",
        )),
        "tests": Kind("It changes tests or how they are run.", _matcher(
            "conftest.py", "tests/*", "test/*", "spec/*", "specs/*", "__tests__/*", "test_*.py", "*_test.py",
            "*_test.go",
            "*.test.*", "*.spec.*", "*_spec.rb", "*test.java", "*tests.cs", "pytest.ini", "tox.ini", "noxfile.py",
            ".coveragerc", "jest.config.*", "vitest.config.*", "karma.conf.*", "playwright.config.*",
            "cypress.config.*",
            ".mocharc*", "phpunit.xml*", "codecov.y*ml",
        )),
        "locks": Kind("It changes which versions of others' code are used.", _matcher(
            "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock*", "poetry.lock",
            "pipfile.lock", "uv.lock", "pdm.lock", "cargo.lock", "go.sum", "go.mod", "gemfile.lock", "composer.lock",
            "mix.lock", "flake.lock", "requirements*.txt", "requirements/*", "constraints*.txt", "gradle.lockfile",
            "packages.lock.json", "deno.lock", "package.resolved", ".npmrc", ".yarnrc*", "pip.conf",
        )),
        "instructions": Kind("It changes what agents are told or may do.", _matcher(
            "claude.md", "claude.local.md", "agents.md", "agent.md", "gemini.md", ".cursorrules", ".cursor/*",
            ".mcp.json",
            "agent.yaml", ".worktreeinclude", ".claude/*", ".codex/*", ".gemini/*", ".aider*", ".windsurfrules",
            ".windsurf/*", ".clinerules*", ".roo/*", ".github/copilot-instructions.md", ".github/instructions/*",
            ".github/prompts/*", ".continue/*", "opencode.json*", ".opencode/*", "skill.md",
        )),
        "runs later": Kind("It changes files that run code later, in a shell, a build or an editor.", _matcher(
            ".envrc", ".env", ".env.*", "makefile", "makefile.*", "gnumakefile", "*.mk", "justfile", ".justfile",
            "taskfile.y*ml",
            "rakefile", "package.json", "setup.py", "setup.cfg", "pyproject.toml", "build.rs", "build.gradle*",
            "settings.gradle*", "gradlew*", "gradle/wrapper/*", "pom.xml", "mvnw*", ".mvn/*", "cmakelists.txt",
            "*.cmake", "meson.build", "configure", "configure.ac", "gemfile", "*.gemspec", ".vscode/*", ".idea/*",
            "*.code-workspace", ".devcontainer/*", ".devcontainer.json", "dockerfile*", "*.dockerfile",
            "containerfile*",
            "docker-compose*.y*ml", "compose.y*ml", "sitecustomize.py", "usercustomize.py", "*.pth", ".bashrc",
            ".bash_profile", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", "config.fish", ".vimrc",
            ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".tool-versions", "mise.toml", ".mise.toml", "tiltfile",
            "vagrantfile", "procfile", "bazel*", "build.bazel", "workspace", ".bazelrc", "gulpfile.*", "gruntfile.*",
            "webpack.config.*", "vite.config.*", "rollup.config.*", "babel.config.*", ".babelrc*", ".eslintrc*",
            "eslint.config.*", "binding.gyp", ".cargo/config*", "flake.nix", "shell.nix", "default.nix", "*.service",
            "crontab*",
        )),
        "git settings": Kind("It changes what git shows, ignores or converts.", _matcher(
            ".gitattributes", ".gitignore", ".gitconfig", ".git-blame-ignore-revs", ".mailmap", ".lfsconfig",
            ".ignore", ".rgignore",
        )),
        "owners": Kind("It changes who must review.", _matcher("codeowners", "owners", "owners_aliases")),
    }
)  # fmt: skip


def kinds_of(path: str) -> tuple[str, ...]:
    """Names of the elevated classes that *path* belongs to: lower case, folded as file systems do, parts by slashes."""
    return tuple(name for name, kind in ELEVATED.items() if kind.paths.fullmatch(path))
