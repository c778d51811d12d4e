// The search of this site runs in a worker, and browsers start none for pages opened from a folder. There, a hidden
// frame takes its place: same messages, same thread as the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      this.ready = new Promise(resolve => script.addEventListener("load", resolve))
      inside.document.body.append(script)
    }

    postMessage(data) {
      const message = new MessageEvent("message", { data })
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(message))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
