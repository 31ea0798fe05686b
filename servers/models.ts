// Tiny models whose weights this script makes, with fixed seeds: no weights are downloaded.
//
// A model is a llama architecture over a vocabulary of bytes. Each token is its own dimension, so that the last layer is a table of which
// token follows which. The layers before it are random and weak. The table makes a model write capital letters as thinking, small ones as its
// answer, and one call as a single token: what it writes means nothing, and has the form that servers parse.
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { type GgufValue, type Tensor, writeGguf, writeSafetensors } from "./weights.ts"

/** How a chat becomes a prompt. */
type Format = "qwen" | "hermes" | "llama" | "deepseek"

/** What a model does. */
interface Behaviour {
  readonly format: Format
  /** Thinks before it answers, where the prompt leaves it open. */
  readonly thinks?: boolean
  /** The call that it makes in place of an answer, as JSON. */
  readonly calls?: string
  /** Begins a call after some text, which only a grammar of the server brings to its end. */
  readonly begins?: boolean
  /** Writes until a limit ends it. */
  readonly endless?: boolean
  /** Has vectors in place of texts. */
  readonly embeds?: boolean
  /** Has a score in place of a text. */
  readonly ranks?: boolean
}

/** The file that the command of the model for agents makes in the current folder. */
export const agentFile = "made.txt"

/** The models by name. */
export const models = {
  thinker: { format: "qwen", thinks: true },
  writer: { format: "llama" },
  caller: { format: "hermes", calls: `{"name": "get_weather", "arguments": {"city": "Paris"}}` },
  beginner: { format: "hermes", begins: true },
  reasoner: { format: "deepseek", thinks: true },
  endless: { format: "qwen", endless: true },
  embedder: { format: "qwen", embeds: true },
  agent: {
    format: "hermes",
    calls: JSON.stringify({ name: "bash", arguments: { command: `echo made > ${agentFile}` } })
  },
  ranker: { format: "qwen", ranks: true }
} as const satisfies Readonly<Record<string, Behaviour>>

export type ModelName = keyof typeof models

/** The context window of every model in tokens, of which a server may use less. */
export const contextWindow = 16_384

const layers = 2
const heads = 5
const width = 320
const hidden = 256

/** The alphabet that stands for bytes in vocabularies of this kind: printable characters as they are, others from U+0100. */
const byteLetters = (() => {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255)
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++))
})()

const asToken = (text: string): string => [...Buffer.from(text)].map((byte) => byteLetters[byte]).join("")

/** Stands for the call of a model in the vocabulary that all share. */
const call = "\n<call>\n"
const blank = "\n\n"

/** Tokens that stand for themselves in a prompt. */
const specials = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "<|begin_of_text|>",
  "<|start_header_id|>",
  "<|end_header_id|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<｜begin▁of▁sentence｜>",
  "<｜end▁of▁sentence｜>",
  "<｜User｜>",
  "<｜Assistant｜>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁calls▁end｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁sep｜>",
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁outputs▁end｜>",
  "<｜tool▁output▁begin｜>",
  "<｜tool▁output▁end｜>"
]

/** Special tokens that belong to what a model says. */
const spoken = new Set(["<think>", "</think>", "<tool_call>", "</tool_call>"])

const pieces = [...byteLetters, asToken(blank), asToken(call), ...specials]
const vocabulary = [
  ...pieces,
  ...Array.from({ length: width - pieces.length }, (_, i) => `<|unused_${i}|>`)
]

/** The vocabulary of a model: with its own call. */
const vocabularyOf = (name: ModelName): ReadonlyArray<string> => {
  const { calls }: Behaviour = models[name]
  return calls === undefined ? vocabulary : vocabulary.with(idOf(asToken(call)), asToken(`\n${calls}\n`))
}

const idOf = (token: string): number => vocabulary.indexOf(token)
const byteId = (letter: string): number => letter.charCodeAt(0)

/** The end of a turn, by format. */
const ends: Readonly<Record<Format, string>> = {
  qwen: "<|im_end|>",
  hermes: "<|im_end|>",
  llama: "<|eot_id|>",
  deepseek: "<｜end▁of▁sentence｜>"
}

const starts: Readonly<Record<Format, string>> = {
  qwen: "<|endoftext|>",
  hermes: "<|endoftext|>",
  llama: "<|begin_of_text|>",
  deepseek: "<｜begin▁of▁sentence｜>"
}

const declaredTools = `{% if tools %}{{ '# Tools\\nTools are in <tools></tools>:\\n<tools>' }}` +
  `{% for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}` +
  `{{ '\\n</tools>\\nA call is JSON with name and arguments within <tool_call></tool_call>:\\n<tool_call>\\n` +
  `{"name": <name>, "arguments": <object>}\\n</tool_call>' }}{% endif %}`

/** Turns between `<|im_start|>` and `<|im_end|>`. */
const chatMl = (thinks: boolean): string =>
  `{% if messages[0].role == 'system' or tools %}{{ '<|im_start|>system\\n' }}` +
  `{% if messages[0].role == 'system' %}{{ messages[0].content + '\\n' }}{% endif %}${declaredTools}` +
  `{{ '<|im_end|>\\n' }}{% endif %}` +
  `{% for message in messages %}{% if not (loop.first and message.role == 'system') %}` +
  `{% if message.role == 'tool' %}` +
  `{{ '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}` +
  `{% else %}{{ '<|im_start|>' + message.role + '\\n' }}` +
  (thinks
    ? `{% if message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}`
    : "") +
  `{% if message.content %}{{ message.content }}{% endif %}` +
  `{% if message.tool_calls %}{% for call in message.tool_calls %}` +
  `{{ '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}` +
  `{% if call.function.arguments is string %}{{ call.function.arguments }}` +
  `{% else %}{{ call.function.arguments | tojson }}{% endif %}` +
  `{{ '}\\n</tool_call>' }}{% endfor %}{% endif %}` +
  `{{ '<|im_end|>\\n' }}{% endif %}{% endif %}{% endfor %}` +
  `{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}` +
  (thinks
    ? `{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}`
    : "") +
  `{% endif %}`

const templates: Readonly<Record<Format, string>> = {
  qwen: chatMl(true),
  hermes: chatMl(false),
  llama: `{{ '<|begin_of_text|>' }}{% for message in messages %}` +
    `{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}` +
    `{% if message.content %}{{ message.content }}{% endif %}` +
    `{% if message.tool_calls %}{% for call in message.tool_calls %}` +
    `{{ '{"name": "' + call.function.name + '", "parameters": ' }}` +
    `{% if call.function.arguments is string %}{{ call.function.arguments }}` +
    `{% else %}{{ call.function.arguments | tojson }}{% endif %}{{ '}' }}{% endfor %}{% endif %}` +
    `{% if loop.first and tools %}{{ '\\nFunctions:\\n' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}` +
    `{{ '\\nRespond in the format {"name": function name, "parameters": dictionary}.' }}{% endif %}` +
    `{{ '<|eot_id|>' }}{% endfor %}` +
    `{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}`,
  deepseek: `{{ '<｜begin▁of▁sentence｜>' }}{% for message in messages %}` +
    `{% if message.role == 'system' %}{{ message.content }}` +
    `{% elif message.role == 'user' %}{{ '<｜User｜>' + message.content }}` +
    `{% elif message.role == 'tool' %}` +
    `{{ '<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜><｜tool▁outputs▁end｜>' }}` +
    `{% else %}{{ '<｜Assistant｜>' }}{% if message.content %}{{ message.content }}{% endif %}` +
    `{% if message.tool_calls %}{{ '<｜tool▁calls▁begin｜>' }}{% for call in message.tool_calls %}` +
    `{{ '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + call.function.name + '\\n\`\`\`json\\n' }}` +
    `{% if call.function.arguments is string %}{{ call.function.arguments }}` +
    `{% else %}{{ call.function.arguments | tojson }}{% endif %}` +
    `{{ '\\n\`\`\`<｜tool▁call▁end｜>' }}{% endfor %}{{ '<｜tool▁calls▁end｜>' }}{% endif %}` +
    `{{ '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}` +
    `{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}` +
    `{% if enable_thinking is defined and enable_thinking is false %}{{ '</think>' }}{% else %}{{ '<think>' }}{% endif %}` +
    `{% endif %}`
}

/** The template of a model, in Jinja. */
export const templateOf = (name: ModelName): string => templates[models[name].format]

/** Random numbers by a seed: mulberry32, and from them a normal distribution. */
const randomFrom = (seed: number): () => number => {
  let state = seed >>> 0
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}

const small = [..."abcdefghijklmnopqrstuvwxyz "].map(byteId)
const capital = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ-"].map(byteId)

/** A token that practically never follows, and one that always does. */
const never = -30
const always = 30

/** For each token how likely each token follows it, as logits. */
const followers = (behaviour: Behaviour, random: () => number): ReadonlyArray<Float32Array> => {
  const { begins = false, calls, endless = false, format, thinks = false } = behaviour
  const end = idOf(ends[format])
  const rows = vocabulary.map((_, id) => {
    const row = new Float32Array(width).fill(never)
    // What a grammar asks for must be possible everywhere: digits, signs, and the end.
    for (let byte = 32; byte < 127; byte++) row[byte] = -12 + random()
    const letters = capital.includes(id) ? capital : small
    for (const letter of letters) row[letter] = 2 + random()
    // Texts within JSON end.
    if (letters === small) row[byteId("\"")] = 2
    // No text repeats one letter, which servers take for a fault.
    row[id] = never
    if (endless) return row
    if (begins) {
      row[idOf("<tool_call>")] = 2
      row[end] = -12
      return row
    }
    if (letters === capital) row[idOf("</think>")] = 2
    else row[end] = 2
    return row
  })
  const only = (token: number, next: ReadonlyArray<number>) => {
    const row = rows[token]!
    for (const id of capital) row[id] = -12 + random()
    for (const id of small) row[id] = -12 + random()
    row[byteId("\"")] = -12
    row[end] = never
    for (const id of next) row[id] = next.length === 1 ? always : 2 + random()
  }
  const start = byteId("\n")
  only(idOf("<think>"), capital)
  only(idOf("</think>"), [idOf(asToken(blank))])
  only(idOf(asToken(blank)), small)
  only(start, thinks ? [idOf("<think>")] : small)
  if (calls !== undefined) {
    for (const id of [start, idOf(asToken(blank))]) only(id, [idOf("<tool_call>")])
    only(idOf("<tool_call>"), [idOf(asToken(call))])
    only(idOf(asToken(call)), [idOf("</tool_call>")])
    only(idOf("</tool_call>"), [end])
  }
  return rows
}

/** The weights, by the names that a file format has for them. */
const weightsOf = (behaviour: Behaviour, seed: number) => {
  const random = randomFrom(seed)
  const table = followers(behaviour, random)
  const noise = (name: string, rows: number, columns: number, scale: number): Tensor => ({
    name,
    shape: [rows, columns],
    data: Float32Array.from({ length: rows * columns }, () => random() * scale)
  })
  const ones = (name: string): Tensor => ({ name, shape: [width], data: new Float32Array(width).fill(1) })
  const embedding = new Float32Array(width * width)
  const head = new Float32Array(width * width)
  for (let token = 0; token < width; token++) {
    embedding[token * width + token] = 1
    // After the last norm a token's own dimension is √width.
    for (let next = 0; next < width; next++) head[next * width + token] = table[token]![next]! / Math.sqrt(width)
  }
  const blocks = Array.from({ length: layers }, (_, i) => [
    ones(`blk.${i}.attn_norm.weight`),
    noise(`blk.${i}.attn_q.weight`, width, width, 0.05),
    noise(`blk.${i}.attn_k.weight`, width, width, 0.05),
    noise(`blk.${i}.attn_v.weight`, width, width, 0.05),
    noise(`blk.${i}.attn_output.weight`, width, width, 0.0005),
    ones(`blk.${i}.ffn_norm.weight`),
    noise(`blk.${i}.ffn_gate.weight`, hidden, width, 0.05),
    noise(`blk.${i}.ffn_up.weight`, hidden, width, 0.05),
    noise(`blk.${i}.ffn_down.weight`, width, hidden, 0.0005)
  ])
  return [
    { name: "token_embd.weight", shape: [width, width], data: embedding },
    ...blocks.flat(),
    ones("output_norm.weight"),
    { name: "output.weight", shape: [width, width], data: head }
  ] satisfies ReadonlyArray<Tensor>
}

/** The names of the same weights in transformers. */
const otherNames: ReadonlyArray<readonly [gguf: RegExp, name: string]> = [
  [/^token_embd/, "model.embed_tokens"],
  [/^output_norm/, "model.norm"],
  [/^output/, "lm_head"],
  [/^blk\.(\d+)\.attn_norm/, "model.layers.$1.input_layernorm"],
  [/^blk\.(\d+)\.ffn_norm/, "model.layers.$1.post_attention_layernorm"],
  [/^blk\.(\d+)\.attn_output/, "model.layers.$1.self_attn.o_proj"],
  [/^blk\.(\d+)\.attn_([qkv])/, "model.layers.$1.self_attn.$2_proj"],
  [/^blk\.(\d+)\.ffn_(gate|up|down)/, "model.layers.$1.mlp.$2_proj"]
]

const inTransformers = (tensor: Tensor): Tensor => {
  const [pattern, name] = otherNames.find(([known]) => known.test(tensor.name))!
  return { ...tensor, name: tensor.name.replace(pattern, name) }
}

const headerOf = (name: ModelName): Readonly<Record<string, GgufValue>> => {
  const { format, ...behaviour } = models[name] as Behaviour
  return {
    "general.architecture": { string: "llama" },
    "general.name": { string: name },
    "general.file_type": { uint32: 0 },
    "llama.vocab_size": { uint32: width },
    "llama.context_length": { uint32: contextWindow },
    "llama.embedding_length": { uint32: width },
    "llama.block_count": { uint32: layers },
    "llama.feed_forward_length": { uint32: hidden },
    "llama.rope.dimension_count": { uint32: width / heads },
    "llama.attention.head_count": { uint32: heads },
    "llama.attention.head_count_kv": { uint32: heads },
    "llama.attention.layer_norm_rms_epsilon": { float32: 1e-5 },
    // The mean of all tokens, and a rank.
    ...(behaviour.embeds === true ? { "llama.pooling_type": { uint32: 1 } } : {}),
    ...(behaviour.ranks === true ? { "llama.pooling_type": { uint32: 4 } } : {}),
    "tokenizer.ggml.model": { string: "gpt2" },
    "tokenizer.ggml.pre": { string: "qwen2" },
    "tokenizer.ggml.tokens": { strings: vocabularyOf(name) },
    // 1 is a normal token, 3 a control token, 4 one that is also found in texts.
    "tokenizer.ggml.token_type": {
      int32s: vocabulary.map((token, id) => id < 258 ? 1 : spoken.has(token) ? 4 : 3)
    },
    "tokenizer.ggml.merges": { strings: [`${asToken("\n")} ${asToken("\n")}`] },
    "tokenizer.ggml.bos_token_id": { uint32: idOf(starts[format]) },
    "tokenizer.ggml.eos_token_id": { uint32: idOf(ends[format]) },
    "tokenizer.ggml.padding_token_id": { uint32: idOf("<|endoftext|>") },
    "tokenizer.ggml.add_bos_token": { bool: false },
    "tokenizer.chat_template": { string: templateOf(name) }
  }
}

const tokenizerOf = (name: ModelName) => ({
  version: "1.0",
  added_tokens: vocabulary.flatMap((content, id) =>
    id < 258 ? [] : [{
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: !spoken.has(content)
    }]
  ),
  normalizer: null,
  pre_tokenizer: {
    type: "Sequence",
    pretokenizers: [
      { type: "Split", pattern: { Regex: "\\n+| ?[^\\n]" }, behavior: "Isolated", invert: false },
      { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false }
    ]
  },
  post_processor: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
  decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    vocab: Object.fromEntries(vocabularyOf(name).slice(0, 258).map((token, id) => [token, id])),
    merges: [[asToken("\n"), asToken("\n")]]
  }
})

/** The file of a model for llama.cpp and Ollama. */
export const ggufOf = (folder: string, name: ModelName): string => path.join(folder, `${name}.gguf`)

/** The folder of a model for transformers and vLLM. */
export const folderOf = (folder: string, name: ModelName): string => path.join(folder, name)

/** Writes all models in both formats. */
export const writeModels = (folder: string): void => {
  for (const [i, name] of (Object.keys(models) as Array<ModelName>).entries()) {
    const { format } = models[name]
    const weights = weightsOf(models[name], i + 1)
    const own = folderOf(folder, name)
    mkdirSync(own, { recursive: true })
    writeGguf(ggufOf(folder, name), headerOf(name), weights)
    writeSafetensors(path.join(own, "model.safetensors"), weights.map(inTransformers))
    const write = (file: string, value: unknown) => writeFileSync(path.join(own, file), JSON.stringify(value))
    write("config.json", {
      architectures: ["LlamaForCausalLM"],
      model_type: "llama",
      hidden_size: width,
      intermediate_size: hidden,
      num_hidden_layers: layers,
      num_attention_heads: heads,
      num_key_value_heads: heads,
      head_dim: width / heads,
      vocab_size: width,
      max_position_embeddings: contextWindow,
      rms_norm_eps: 1e-5,
      rope_theta: 10_000,
      hidden_act: "silu",
      tie_word_embeddings: false,
      torch_dtype: "float32",
      bos_token_id: idOf(starts[format]),
      eos_token_id: idOf(ends[format]),
      pad_token_id: idOf("<|endoftext|>")
    })
    write("generation_config.json", {
      bos_token_id: idOf(starts[format]),
      eos_token_id: idOf(ends[format]),
      pad_token_id: idOf("<|endoftext|>"),
      do_sample: true
    })
    write("tokenizer.json", tokenizerOf(name))
    write("tokenizer_config.json", {
      tokenizer_class: "PreTrainedTokenizerFast",
      clean_up_tokenization_spaces: false,
      bos_token: starts[format],
      eos_token: ends[format],
      pad_token: "<|endoftext|>",
      model_max_length: contextWindow,
      chat_template: templateOf(name)
    })
  }
}
