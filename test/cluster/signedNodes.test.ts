/** Nodes over one store whose accounts sign by keys of AWS: a role is assumed once for all of them, and keys without a role are each node's own. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type CloudServer, startCloudServer } from "../../src/testing/clouds/cloudServer.ts"
import { role, secrets, startTokenServer, type TokenServer } from "../credentials/tokenServer.ts"
import { chat } from "../gateway/support.ts"
import { streamed } from "../support/openaiServer.ts"
import { type Cluster, type ClusterNode, startCluster, untilReady } from "./cluster.ts"

const region = "eu-central-1"

describe("nodes that sign by keys of AWS", () => {
  let cloud: CloudServer
  let tokens: TokenServer
  let cluster: Cluster

  beforeAll(async () => {
    tokens = await startTokenServer()
    cloud = await startCloudServer({
      region,
      project: "project-1",
      keys: tokens.keys,
      tokenOf: () => undefined,
      models: ["gpt"]
    })
    const upstream = { vendor: "bedrock", driver: "openai", region, base_url: cloud.url, models: { m: "gpt" } }
    cluster = await startCluster({
      nodes: 0,
      config: {
        upstreams: { shared: upstream, own: upstream },
        accounts: [
          {
            upstream: "shared",
            credential: { from: "aws", key: secrets.key, secret: secrets.signing, region, role, sts: tokens.url }
          },
          { upstream: "own", credential: { from: "aws" } }
        ]
      }
    })
    await Promise.all(["n1", "n2"].map(start))
  })
  afterAll(async () => {
    await cluster.stop()
    await cloud.stop()
    await tokens.stop()
  })

  /** Starts a node whose own keys are those of its container's role. */
  const start = async (id: string): Promise<ClusterNode> => {
    const node = await cluster.add(id, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${tokens.url}/container/keys`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: secrets.client
    })
    await untilReady(node)
    return node
  }

  const nodeOf = (id: string): ClusterNode => cluster.nodes.findLast((node) => node.id === id)!

  /** Each node gets a request, all concurrently. Returns the ids of the keys that the server accepted. */
  const keysAt = async (upstream: string, ...ids: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
    const accepted: Array<string> = []
    cloud.answer(({ seen }) => {
      accepted.push(/Credential=(\w+)\//.exec(seen.headers.authorization ?? "")?.[1] ?? "")
      return streamed({ content: "Hello" })
    })
    const options = { model: `${upstream}/m`, stream: true }
    for (const { ending, error, text } of await Promise.all(ids.map((id) => chat(nodeOf(id).url, "Hi", options)))) {
      assert.deepStrictEqual([text, ending, error], ["Hello", "finish", undefined])
    }
    return accepted
  }

  const asked = (path: string) => tokens.seen.filter((seen) => seen.path === path).length
  const assumed = () => asked("/")
  const issued = () => asked("/container/keys")
  const expire = (id: string) => tokens.keys.set(id, { ...tokens.keys.get(id)!, isExpired: true })

  it("share the keys of a role, assumed once, and once more when they end in mid-life", async () => {
    const [first, ...others] = await keysAt("shared", "n1", "n2", "n1", "n2")
    assert.deepStrictEqual([others, assumed()], [[first, first, first], 1])
    expire(first!)
    const [second, ...rest] = await keysAt("shared", "n1", "n2", "n1", "n2")
    assert.deepStrictEqual([rest, assumed()], [[second, second, second], 2])
    assert.notStrictEqual(second, first)
  })

  it("have their own keys without a role, and renew them apart", async () => {
    const one = await keysAt("own", "n1", "n1")
    const other = await keysAt("own", "n2", "n2")
    assert.deepStrictEqual([new Set(one).size, new Set(other).size, issued()], [1, 1, 2])
    assert.notStrictEqual(one[0], other[0])
    expire(one[0]!)
    const [next] = await keysAt("own", "n1")
    assert.notInclude([one[0], other[0]], next)
    assert.deepStrictEqual([await keysAt("own", "n2"), issued()], [[other[0]], 3])
  })

  it("sign the first request after a restart by the shared keys of a role, and by fresh ones of their own", async () => {
    const [shared = ""] = await keysAt("shared", "n2")
    const [own] = await keysAt("own", "n1")
    const before = [assumed(), issued()] as const
    await nodeOf("n1").kill()
    await start("n1")
    assert.deepStrictEqual(await keysAt("shared", "n1", "n2"), [shared, shared])
    const [fresh] = await keysAt("own", "n1")
    assert.notStrictEqual(fresh, own)
    assert.deepStrictEqual([assumed(), issued()], [before[0], before[1] + 1])
    // The store has the keys while no node runs.
    await Promise.all([nodeOf("n1").kill(), nodeOf("n2").kill()])
    await start("n3")
    assert.deepStrictEqual([await keysAt("shared", "n3"), assumed()], [[shared], before[0]])
  })
})
