// `npm run test:busy`: the tests beside four busy loops, all at low priority. What passes alone passes on a busy machine too.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { setPriority } from "node:os"

const loops = 4

/** The lowest but some: the machine's other work goes first. */
const niceness = 10

// What is started from here inherits it.
setPriority(niceness)
const busy = Array.from(
  { length: loops },
  () => spawn(process.execPath, ["--eval", "for (;;) {}"], { stdio: "ignore" })
)
process.once("exit", () => busy.forEach((each) => each.kill("SIGKILL")))
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1))
const [code] = await once(
  spawn(process.execPath, ["scripts/test.ts", ...process.argv.slice(2)], { stdio: "inherit" }),
  "exit"
) as [number | null]
process.exit(code ?? 1)
