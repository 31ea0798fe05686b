/** What Helm makes of the chart (`npm run chart`): the objects of each example, and the refusals. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import * as YAML from "yaml"
import { parseStoreAddress } from "../../../src/cluster/store/address.ts"
import { decodeConfig } from "../../../src/config/decodeConfig.ts"
import { sharedNotice } from "../../../src/server/nodeServer.ts"
import { pageText } from "../../support/snippets.ts"
import { chartTexts, digestName, digestOf, examples, fixturePath, readFixtures, refusals } from "./chart.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- objects of Kubernetes, whose fields the tests name
type Thing = any

const fixtures = readFixtures()

/** The objects of an example by kind, and its values over the default ones. */
const objectsOf = (example: string) => {
  const rendered = fixtures.get(`${example}.yaml`) ?? assert.fail(`no rendering of ${example}`)
  const objects = YAML.parseAllDocuments(rendered).map((document): Thing => {
    assert.deepEqual(document.errors, [])
    return document.toJS()
  })
  const kinds = new Map(objects.map((object) => [object.kind, object]))
  assert.strictEqual(kinds.size, objects.length)
  const values: Thing = {
    ...YAML.parse(chartTexts.get("values.yaml")!),
    ...YAML.parse(chartTexts.get(`examples/${example}.yaml`)!)
  }
  return { kinds, values }
}

const one = (kinds: ReadonlyMap<string, Thing>, kind: string): Thing => kinds.get(kind) ?? assert.fail(`no ${kind}`)

describe("the renderings of the chart", () => {
  it("belong to this chart: after a change, `npm run chart` lets Helm make them anew", () => {
    assert.strictEqual(readFileSync(fixturePath(digestName), "utf8").trim(), digestOf(fixtures))
    assert.sameMembers([...fixtures.keys()], [...examples.map((name) => `${name}.yaml`), "refused.json"])
  })

  it("refuse values that do not work, with a sentence", () => {
    const messages = JSON.parse(fixtures.get("refused.json")!)
    assert.hasAllKeys(messages, Object.keys(refusals))
    for (const [name, { message }] of Object.entries(refusals)) assert.include(messages[name], message, name)
  })
})

describe.each(examples)("the objects of the example %s", (example) => {
  const { kinds, values } = objectsOf(example)
  const deployment = one(kinds, "Deployment")
  const { metadata, spec: pod } = deployment.spec.template
  const [container] = pod.containers
  const { stringData } = one(kinds, "Secret")

  it("select the pods, and reach their port", () => {
    const { selector, ports } = one(kinds, "Service").spec
    const selected = [
      selector,
      deployment.spec.selector.matchLabels,
      ...pod.topologySpreadConstraints.map((each: Thing) => each.labelSelector.matchLabels)
    ]
    for (const labels of selected) assert.deepInclude(metadata.labels, labels)
    assert.isNotEmpty(pod.topologySpreadConstraints)
    assert.strictEqual(ports[0].port, values.service.port)
    assert.include(container.ports.map(({ name }: Thing) => name), ports[0].targetPort)
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      assert.strictEqual(container[probe].httpGet.port, ports[0].targetPort)
    }
    const variables = container.env.map(({ name }: Thing) => name)
    assert.sameMembers(variables, [...new Set(variables)])
    assert.strictEqual(
      container.env.find(({ name }: Thing) => name === "PORT").value,
      String(container.ports[0].containerPort)
    )
    assert.sameMembers(
      container.volumeMounts.map(({ name }: Thing) => name),
      pod.volumes.map(({ name }: Thing) => name)
    )
    const { metadata: { labels, name } } = one(kinds, "Service")
    for (const object of kinds.values()) assert.deepInclude(object.metadata, { name })
    const monitor = kinds.get("ServiceMonitor")
    if (monitor !== undefined) {
      assert.deepInclude(labels, monitor.spec.selector.matchLabels)
      assert.strictEqual(monitor.spec.endpoints[0].port, ports[0].name)
    }
  })

  it("have an admin key, and a store if there are several", () => {
    const secrets = container.envFrom.map(({ secretRef }: Thing) => secretRef.name)
    assert.isTrue("GATEWAY_ADMIN_KEY" in stringData || secrets.includes(values.existingSecret))
    const reads = container.env.find(({ name }: Thing) => name === "GATEWAY_STORE_URL")
    const address: string | undefined = stringData.GATEWAY_STORE_URL
    const hasStore = address !== undefined || reads !== undefined
    assert.strictEqual(container.env.some(({ name }: Thing) => name === "GATEWAY_NODE_ID"), hasStore)
    if (address !== undefined) assert.isDefined(parseStoreAddress(address))
    if (reads !== undefined) {
      const { existingSecret: name, existingSecretKey: key } = values.store
      assert.deepEqual(reads.valueFrom, { secretKeyRef: { name, key } })
    }
    const { replicas } = deployment.spec
    assert.strictEqual(replicas, values.replicas)
    if (replicas > 1) {
      assert.isTrue(hasStore)
      assert.deepInclude(metadata.labels, one(kinds, "PodDisruptionBudget").spec.selector.matchLabels)
      assert.deepInclude(deployment.spec.strategy, { type: "RollingUpdate" })
    } else {
      assert.isUndefined(kinds.get("PodDisruptionBudget"))
      assert.deepEqual(deployment.spec.strategy, { type: "Recreate" })
      assert.strictEqual(
        pod.volumes[0].persistentVolumeClaim.claimName,
        one(kinds, "PersistentVolumeClaim").metadata.name
      )
    }
    const credential = kinds.get("ServiceMonitor")?.spec.endpoints[0].authorization.credentials
    if (credential !== undefined) {
      assert.include([values.existingSecret, values.serviceMonitor.credentialSecret], credential.name)
    }
  })

  it.effect("leave a pod the time of preStop, notice and drain", () =>
    Effect.gen(function*() {
      const written: Thing = JSON.parse(stringData.GATEWAY_CONFIG_JSON ?? "{}")
      const { drain: { notice }, request_timeouts: { drain } } =
        (yield* decodeConfig(written, { duplicates: "refuse" })).snapshot.config
      const hasStore = container.env.some(({ name }: Thing) => name === "GATEWAY_NODE_ID")
      const before = container.lifecycle?.preStop.sleep.seconds ?? 0
      assert.strictEqual(
        pod.terminationGracePeriodSeconds,
        before + (notice ?? (hasStore ? sharedNotice : 0)) + drain + 10
      )
    }))
})

describe("the example of three replicas", () => {
  it("has an ingress without buffering and with a long timeout, and is scraped with the key of its secret", () => {
    const { kinds } = objectsOf("three-replicas")
    const { metadata, spec } = one(kinds, "Ingress")
    assert.deepEqual(spec.rules[0].http.paths[0].backend.service, {
      name: one(kinds, "Service").metadata.name,
      port: { name: "http" }
    })
    assert.include(Object.values(metadata.annotations), "off")
    assert.deepEqual(one(kinds, "ServiceMonitor").spec.endpoints[0].authorization.credentials, {
      name: "gateway-keys",
      key: "GATEWAY_ADMIN_KEY"
    })
  })
})

describe("the example with volumes of its own", () => {
  it("has each of its labels, annotations and other fields", () => {
    const { kinds, values } = objectsOf("own-volumes")
    const { metadata, spec: { template } } = one(kinds, "Deployment")
    assert.deepEqual(metadata.annotations, values.annotations)
    assert.deepInclude(template.metadata.annotations, values.podAnnotations)
    assert.deepInclude(template.metadata.labels, values.podLabels)
    assert.deepInclude(template.spec, {
      priorityClassName: values.priorityClassName,
      nodeSelector: values.nodeSelector,
      tolerations: values.tolerations
    })
    assert.deepEqual(template.spec.containers[0].lifecycle, { preStop: values.preStop })
    assert.deepInclude(template.spec.volumes, values.extraVolumes[0])
    assert.deepInclude(template.spec.containers[0].env, values.extraEnv[0])
    assert.deepEqual(one(kinds, "Service").metadata.annotations, values.service.annotations)
    assert.strictEqual(one(kinds, "PodDisruptionBudget").spec.maxUnavailable, "50%")
    const { metadata: { labels }, spec } = one(kinds, "ServiceMonitor")
    assert.deepInclude(labels, values.serviceMonitor.labels)
    assert.deepInclude(spec.endpoints[0], {
      interval: "1m",
      authorization: { credentials: { name: "gateway-viewer", key: "token" } }
    })
  })
})

describe("the addresses of stores that the chart takes", () => {
  const pattern = new RegExp(JSON.parse(chartTexts.get("values.schema.json")!).properties.store.properties.url.pattern)
  const addresses = [
    "redis://user:p%40ss@store:6380/2",
    "redis://[::1]:6379",
    "rediss://store",
    "unix:///run/store/redis.sock?db=1",
    "unix://user:password@/run/store/redis.sock",
    "redis+sentinel://:password@a:26379,b:26379/main/1?sentinel_user=u&sentinel_password=p",
    "rediss+sentinel://a,b/main",
    "redis+cluster://a:6379,b:6379",
    "rediss+cluster://user:password@a"
  ]

  it("belong to the gateway", () => {
    for (const address of addresses) {
      assert.isDefined(parseStoreAddress(address), address)
      assert.match(address, pattern)
    }
    for (const address of ["http://store", "redis+other://store", "redis:store", " redis://store", "xredis://store"]) {
      assert.isUndefined(parseStoreAddress(address), address)
      assert.notMatch(address, pattern)
    }
    // Each scheme of the table in docs/operate/store-connection.md.
    const schemes = new Set(
      [...pageText("docs/operate/store-connection.md").matchAll(/`((?:rediss?(?:\+\w+)?|unix):\/\/)/g)].map((
        [, scheme = ""]
      ) => scheme)
    )
    assert.sameMembers([...new Set(addresses.map((address) => address.replace(/\/\/.*/, "//")))], [...schemes])
  })
})
