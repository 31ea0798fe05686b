/**
 * Packages of the npm registry that do the same work, side by side with a plain relay and the gateway. Each is installed at a pinned version
 * for the run, below the temporary directory, and runs with its defaults.
 */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import path from "node:path"
import { promisify } from "node:util"
import { compare, type Starter } from "./compare.ts"
import { startersOf } from "./gateway.ts"
import type { Scenario } from "./rows.ts"
import { startProcess, type Target, type Targets, withTargets } from "./targets.ts"

/** Where a package is installed and runs. */
interface Place {
  readonly folder: string
  readonly port: number
  /** The address of the upstream's chat completions, and its base. */
  readonly chat: string
  readonly base: string
}

export interface Peer {
  /** The package itself is the first one. */
  readonly packages: readonly [string, ...ReadonlyArray<string>]
  /** Prepares its files. Returns the arguments of Node. */
  readonly prepare: (place: Place) => ReadonlyArray<string>
  readonly target?: (place: Place) => Pick<Target, "headers" | "model">
}

const providerOf = ({ chat }: Place) => ({ name: "bench", api_base_url: chat, api_key: "sk-bench", models: ["bench"] })

/** In front of the upstream as provider and model, as both packages of this vendor name it. */
const model = "bench,bench"

export const peers: ReadonlyArray<Peer> = [
  {
    // It has no command. Its README and `src/server.ts` describe the class and its configuration.
    packages: ["@musistudio/llms@1.0.53"],
    prepare: (place) => {
      const config = { HOST: "127.0.0.1", PORT: String(place.port), providers: [providerOf(place)] }
      const file = path.join(place.folder, "start.cjs")
      const options = JSON.stringify({ initialConfig: config })
      writeFileSync(file, `void new (require("@musistudio/llms").default)(${options}).start()\n`)
      return [file]
    },
    target: () => ({ model })
  },
  {
    // With later versions of its HTTP server, which its range allows, its streams fail. Headers name the provider and its address.
    packages: ["@portkey-ai/gateway@1.15.2", "@hono/node-server@1.13.5"],
    prepare: ({ folder, port }) => [
      path.join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js"),
      `--port=${port}`
    ],
    target: ({ base }) => ({ headers: { "x-portkey-provider": "openai", "x-portkey-custom-host": base } })
  },
  {
    // Version 3 depends on a package that the registry does not have.
    packages: ["@musistudio/claude-code-router@2.0.0"],
    prepare: (place) => {
      const own = path.join(place.folder, ".claude-code-router")
      mkdirSync(own, { recursive: true })
      const config = {
        APIKEY: "bench-key",
        PORT: place.port,
        Providers: [providerOf(place)],
        Router: { default: model }
      }
      writeFileSync(path.join(own, "config.json"), JSON.stringify(config))
      return [path.join(place.folder, "node_modules/@musistudio/claude-code-router/dist/cli.js"), "start"]
    },
    target: () => ({ model })
  }
]

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}

/** Installs a package. Rejects with the output of npm. */
const install = async ({ folder: within, serverUrl }: Targets, peer: Peer, i: number): Promise<Starter> => {
  const folder = path.join(within, `peer-${i}`)
  mkdirSync(folder)
  const options = ["--prefix", folder, "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"]
  await promisify(execFile)("npm", ["install", ...options, ...peer.packages])
  const [name] = peer.packages
  return {
    name,
    mayFail: true,
    start: async () => {
      const port = await freePort()
      const place = { folder, port, base: `${serverUrl}/v1`, chat: `${serverUrl}/v1/chat/completions` }
      const log = path.join(folder, `${port}.log`)
      const { pid } = await startProcess({ args: peer.prepare(place), env: { HOME: folder }, ready: port, log })
      return { name, url: `http://127.0.0.1:${port}`, pid, ...peer.target?.(place) }
    }
  }
}

/** Prints the cost of a reply of each package in relation to the gateway. */
export const peersBench = (rows: ReadonlyArray<Scenario>): Promise<void> =>
  withTargets(async (targets) => {
    const installed: Array<Starter> = []
    for (const [i, peer] of peers.entries()) {
      try {
        installed.push(await install(targets, peer, i))
      } catch (error) {
        process.stdout.write(`${peer.packages[0]} could not be installed: ${String(error)}\n\n`)
      }
    }
    await compare(targets, rows, [...startersOf(targets, ["as shipped"]), ...installed], "gateway")
  })
