/**
 * The console's texts in Chinese.
 */
import type { Texts } from "./en.ts"
import { accountTexts } from "./zh/accounts.ts"
import { configurationTexts } from "./zh/configuration.ts"
import { trafficTexts } from "./zh/traffic.ts"

export const zh: Texts = {
  common: {
    product: "Model Gateway",
    skip: "跳到正文",
    main: "主导航",
    menu: "菜单",
    language: "语言",
    theme: "主题",
    themes: { system: "跟随系统", light: "浅色", dark: "深色" },
    signOut: "退出登录",
    connection: "连接",
    connections: { connecting: "正在连接", live: "实时", reconnecting: "正在重连" },
    result: "结果",
    dismiss: "关闭提示",
    pages: {
      overview: "概览",
      requests: "请求",
      playground: "试验场",
      keys: "密钥",
      accounts: "账号",
      settings: "设置",
      usage: "用量",
      samples: "样本",
      transfer: "导入与导出",
      about: "关于"
    },
    loading: "正在加载…",
    again: "重试",
    cancel: "取消",
    close: "关闭",
    save: "保存",
    delete: "删除",
    copy: "复制",
    copied: "已复制",
    cannotCopy: "浏览器不允许本页面复制。请选中文本后自行复制。",
    none: "无",
    yes: "是",
    no: "否",
    of: (part, whole) => `${part} / ${whole}`,
    deleteOf: (name) => `删除 ${name}`,
    deleteAsk: "此操作无法撤销。",
    notLasting: "进程结束后更改会丢失：配置来自环境变量，且不会写回。",
    needsSync: "请同步到托管平台以保留更改。",
    page: (page, pages) => `第 ${page} 页，共 ${pages} 页`,
    previous: "上一页",
    next: "下一页",
    shown: (from, to, of) => `${from}–${to}，共 ${of}`,
    seconds: (text) => `${text} 秒`,
    milliseconds: (text) => `${text} 毫秒`
  },
  failures: {
    unreachable: "无法连接到网关。",
    status: (status) => `网关返回了状态 ${status}。`,
    unknown: "出了点问题。"
  },
  signIn: {
    title: "登录",
    key: "管理密钥或密码",
    submit: "登录",
    hint: "自动生成的管理密钥会在网关启动时打印出来。",
    ended: "会话已结束，请重新登录。",
    inMemory: "本页面不是通过 https 或本机打开的，因此登录状态会随页面关闭而结束。"
  },
  ...trafficTexts,
  ...accountTexts,
  ...configurationTexts
}
