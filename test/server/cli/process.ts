/**
 * The gateway's command as a process.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { service, serviceEnvironment } from "../../support/service.ts"

/** The result of a command. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A running command. */
export interface Running {
  readonly child: ChildProcess
  /** Waits for output that matches, and returns the match. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>
  readonly ended: Promise<Ended>
}

/** Starts the command (by default the bundle). It gets only the given environment variables. */
export const start = (
  args: ReadonlyArray<string>,
  env: Record<string, string> = {},
  cwd?: string,
  program = service
): Running => {
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...serviceEnvironment, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd })
  })
  let stdout = ""
  let stderr = ""
  const waiting = new Set<() => void>()
  const note = () => {
    for (const look of waiting) look()
  }
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
    note()
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
    note()
  })
  const ended = once(child, "close").then(([code, signal]: Array<unknown>) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout,
    stderr
  }))
  return {
    child,
    ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(stdout + stderr)
          if (found === null) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
        void ended.then(() => reject(new Error(`ended without ${pattern}:\n${stdout}${stderr}`)))
      })
  }
}

/** Runs the command to its end. */
export const run = (
  args: ReadonlyArray<string>,
  options: { readonly env?: Record<string, string>; readonly input?: string; readonly cwd?: string } = {}
): Promise<Ended> => {
  const running = start(args, options.env, options.cwd)
  running.child.stdin?.end(options.input ?? "")
  return running.ended
}
