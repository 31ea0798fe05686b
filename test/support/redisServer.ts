/**
 * A real redis-server for one test, on a free port and a Unix socket in a temporary folder. The scope's end removes it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { createClient } from "redis"

const missing = "redis-server is not installed, and the tests of many nodes need one: apt-get install redis-server " +
  "(or brew install redis), or name one in REDIS_SERVER"

const works = (command: string): boolean => spawnSync(command, ["--version"]).status === 0

/** The command of an installed server. Throws a message that says what to install. */
export const findServer = (): string => {
  const named = process.env.REDIS_SERVER
  const found = [...(named === undefined ? [] : [named]), "redis-server", "valkey-server"].find(works)
  if (found === undefined) throw new Error(missing)
  return found
}

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer().listen(port, "127.0.0.1")
  try {
    await once(server, "listening")
  } catch {
    return false
  }
  server.close()
  await once(server, "close")
  return true
}

/**
 * A free port for a process that starts later. It lies below the range from which the system takes the local ports of outgoing
 * connections: until the process listens, no connection of another test can occupy it, nor can a client that polls the port be
 * connected to itself. The same holds for the port 10,000 above, where a Redis server in cluster mode listens to the other nodes.
 */
export const freePort = async (): Promise<number> => {
  const port = randomInt(10_000, 20_000)
  return await isFree(port) && await isFree(port + 10_000) ? port : freePort()
}

/** A client for inspection by tests. */
export const connect = async (socket: string, password?: string) => {
  const client = createClient({
    socket: { path: socket, tls: false },
    ...(password === undefined ? {} : { password }),
    RESP: 2,
    maintNotifications: "disabled"
  })
  client.on("error", () => undefined)
  await client.connect()
  return client
}

export type RedisClient = Awaited<ReturnType<typeof connect>>

/** Sends a command; returns the raw reply. */
export const command = async (client: RedisClient, ...args: ReadonlyArray<string>): Promise<unknown> => {
  const reply: unknown = await client.sendCommand(args)
  return reply
}

/** The same for replies that are lists of strings. */
export const listOf = async (client: RedisClient, ...args: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const reply = await command(client, ...args)
  return Array.isArray(reply) ? reply.map(String) : []
}

/** A server that can be stopped and started. */
export class RedisServer {
  readonly folder: string
  readonly socket: string
  readonly port: number
  /** What the option `requirepass` of the last start names. */
  password: string | undefined = undefined
  readonly #command: string
  #options: ReadonlyArray<string> = []
  #process: ChildProcess | undefined = undefined

  constructor(command: string, port: number) {
    this.#command = command
    this.folder = mkdtempSync(path.join(tmpdir(), "gateway-redis-"))
    this.socket = path.join(this.folder, "redis.sock")
    this.port = port
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  get process(): ChildProcess {
    if (this.#process === undefined) throw new Error("the server does not run")
    return this.#process
  }

  /** Starts with the data that the last stop saved, if any; again with the same options if none are given. */
  async start(...given: ReadonlyArray<string>): Promise<void> {
    const options = this.#options = given.length > 0 ? given : this.#options
    const args = ["--port", String(this.port), "--bind", "127.0.0.1", "--unixsocket", this.socket, "--dir", this.folder]
    const server = spawn(
      this.#command,
      [...args, "--save", "", "--appendonly", "no", "--daemonize", "no", ...options],
      {
        stdio: ["ignore", "pipe", "inherit"]
      }
    )
    this.#process = server
    const at = options.indexOf("--requirepass")
    this.password = at === -1 ? undefined : options[at + 1]
    let output = ""
    await new Promise<void>((resolve, reject) => {
      server.stdout.on("data", (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes("eady to accept connections")) resolve()
        if (output.length > 100_000) output = output.slice(-10_000)
      })
      server.once("error", reject)
      server.once("exit", (code) => reject(new Error(`redis-server ended with ${code}:\n${output}`)))
    })
  }

  /** Stops immediately. The next start reads what was saved last (`SAVE`), which may be older. */
  async crash(): Promise<void> {
    const server = this.process
    this.#process = undefined
    const ended = once(server, "exit")
    server.kill("SIGKILL")
    await ended
    rmSync(this.socket, { force: true })
  }

  /** Stops immediately. With `save` it writes its data first, and the next start reads it. */
  async stop(save = false): Promise<void> {
    const server = this.#process
    this.#process = undefined
    if (server === undefined || server.exitCode !== null) return
    if (save && existsSync(this.socket)) {
      const client = await connect(this.socket, this.password)
      await client.sendCommand(["SAVE"])
      client.destroy()
    } else {
      rmSync(path.join(this.folder, "dump.rdb"), { force: true })
    }
    const ended = once(server, "exit")
    server.kill("SIGKILL")
    await ended
    rmSync(this.socket, { force: true })
  }
}

/** A self-signed certificate for 127.0.0.1, and its key. */
export const makeCertificate = (folder: string) => {
  const [cert, key] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")]
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
  const made = spawnSync(
    "openssl",
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, "-keyout", key, "-out", cert]
  )
  if (made.status !== 0) throw new Error("openssl is not installed, and the tests of TLS make a certificate with it")
  return { cert, key }
}

/** A server whose port accepts only TLS, and its certificate. */
export const tlsServer = (
  ...options: ReadonlyArray<string>
): Effect.Effect<{ readonly server: RedisServer; readonly cert: string }, never, Scope.Scope> => {
  let made = { cert: "", key: "" }
  return Effect.map(
    redisServer((server) => {
      made = makeCertificate(server.folder)
      const { cert, key } = made
      const files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert]
      return ["--port", "0", "--tls-port", String(server.port), "--tls-auth-clients", "no", ...files, ...options]
    }),
    (server) => ({ server, cert: made.cert })
  )
}

/** Whether the installed server supports TLS. */
export const speaksTls = (): boolean =>
  !spawnSync(findServer(), ["--tls-port", "0", "--no-such-option", "x"]).stderr.toString().includes("'tls-port")

/** A running server; stopped and removed when the scope closes. Options may depend on its port and folder. */
export const redisServer = (
  ...options: ReadonlyArray<string> | readonly [(server: RedisServer) => ReadonlyArray<string>]
): Effect.Effect<RedisServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = new RedisServer(findServer(), await freePort())
      await server.start(...options.flatMap((option) => typeof option === "string" ? option : option(server)))
      return server
    }),
    (server) =>
      Effect.promise(async () => {
        await server.stop()
        rmSync(server.folder, { recursive: true, force: true })
      })
  )
