// An agent command line in front of the gateway: it asks, and runs the call that the server's model makes.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { clients, install } from "../scripts/clients.ts"
import { agentFile } from "./models.ts"
import { until } from "./processes.ts"

/** Milliseconds within which the agent must have run the command: its prompt has a token for each letter. */
const longest = 180_000

/**
 * Runs pi in an empty folder with one task. Returns whether it has run the model's command there, and what it printed. The model makes its
 * call in every turn, so that the agent ends with the file, or after `longest`.
 */
export const runAgent = async (url: string, key: string, model: string): Promise<{ ran: boolean; output: string }> => {
  const bin = install(clients.find(({ name }) => name === "pi")!)
  const home = mkdtempSync(path.join(tmpdir(), "gateway-agent-"))
  const project = path.join(home, "project")
  const settings = path.join(home, ".pi/agent")
  for (const folder of [project, settings]) mkdirSync(folder, { recursive: true })
  const gateway = { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: key, models: [{ id: model }] }
  writeFileSync(path.join(settings, "models.json"), JSON.stringify({ providers: { gateway } }))
  const agent = spawn(bin, ["-p", "--model", `gateway/${model}`, "Make a file."], {
    cwd: project,
    env: { PATH: process.env["PATH"] ?? "", HOME: home },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [agent.stdout, agent.stderr]) {
    stream.on("data", (piece: Buffer) => void (output += String(piece)))
  }
  const ended = once(agent, "exit")
  try {
    await until(longest, () => existsSync(path.join(project, agentFile)) || agent.exitCode !== null)
    return { ran: existsSync(path.join(project, agentFile)), output }
  } finally {
    agent.kill()
    await ended
    rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  }
}
