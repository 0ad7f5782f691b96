// Drives sandcastle as a library, without a container and without an account.
//
//     node benchmarks/drivers/sandcastle.mjs PREFIX worktree REPOSITORY BRANCH
//     node benchmarks/drivers/sandcastle.mjs PREFIX run REPOSITORY LOG COMMAND
import { pathToFileURL } from "node:url";

const [prefix, what, cwd, name, command] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${prefix}/node_modules/@ai-hero/sandcastle/dist/${file}`));
const library = await load("index.js");

if (what === "worktree") {
  const made = await library.createWorktree({ branchStrategy: { type: "branch", branch: name }, cwd });
  console.log(made.worktreePath);
} else {
  const { noSandbox } = await load("sandboxes/no-sandbox.js");
  const agent = {
    name: "benchmark",
    env: {},
    captureSessions: false,
    buildPrintCommand: () => ({ command }),
    // Its own reader of the very dialect that the stream is in.
    parseStreamLine: library.claudeCode("benchmark").parseStreamLine,
  };
  await library.run({
    agent,
    sandbox: noSandbox(),
    cwd,
    prompt: "benchmark",
    maxIterations: 1,
    branchStrategy: { type: "merge-to-head" },
    logging: { type: "file", path: name },
  });
}
