package k8s

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/kube"
)

// statusPause is the time between two looks at the status of the agent's pod.
const statusPause = 500 * time.Millisecond

// ImageDigest returns the digest of the image of all pods, "sha256:…". It is the image of the agent's own pod, whose kubelet reports the digest some
// time after the start of the agent.
func (c *Config) ImageDigest(ctx context.Context) (string, error) {
	for {
		id, err := c.imageID(ctx)
		if err != nil || id != "" {
			return digestOf(id), err
		}
		if err := kube.Pause(ctx, statusPause); err != nil {
			return "", err
		}
	}
}

// imageID is the ID of the image in the status of the agent's pod. It is empty until the kubelet has reported it. An ID without a digest is an error.
func (c *Config) imageID(ctx context.Context) (id string, err error) {
	err = kube.Retry(ctx, nil, func(ctx context.Context) error {
		list, err := c.Client.Pods(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + c.Owner.Name})
		switch {
		case err != nil:
			return err
		case len(list.Items) == 0:
			return errors.New("the pod of the agent does not exist")
		}
		for _, s := range list.Items[0].Status.ContainerStatuses {
			id = s.ImageID
		}
		if id != "" && digestOf(id) == "" {
			return fmt.Errorf("the kubelet reports the image %.200q, which has no digest", id)
		}
		return nil
	})
	return id, err
}

var digestPattern = regexp.MustCompile("^(?:sha256:)?([0-9a-f]{64})$")

// digestOf is the digest in the ID of an image: "REPOSITORY@sha256:…" for an image of a registry, and "sha256:…" or the number alone for an image that
// the node has loaded from a file. It is empty for another ID.
func digestOf(id string) string {
	match := digestPattern.FindStringSubmatch(id[strings.LastIndex(id, "@")+1:])
	if match == nil {
		return ""
	}
	return "sha256:" + match[1]
}
