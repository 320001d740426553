package cri

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stubbornImages fails to remove an image, which is then gone or not.
type stubbornImages struct {
	api.ImageServiceClient
	image *api.Image
}

func (stubbornImages) RemoveImage(context.Context, *api.RemoveImageRequest, ...grpc.CallOption) (*api.RemoveImageResponse, error) {
	return nil, status.Error(codes.Unknown, "identifier is not an image")
}

func (s stubbornImages) ImageStatus(context.Context, *api.ImageStatusRequest, ...grpc.CallOption) (*api.ImageStatusResponse, error) {
	return &api.ImageStatusResponse{Image: s.image}, nil
}

// The removal of an image that another request has removed meanwhile is no failure, also if the engine says so. An image that stays is one.
func TestRemovedMeanwhile(t *testing.T) {
	if err := (&client{images: stubbornImages{}}).removeImage(t.Context(), "image:1"); err != nil {
		t.Errorf("removal of an image that is gone: %v", err)
	}
	err := (&client{images: stubbornImages{image: &api.Image{Id: "1"}}}).removeImage(t.Context(), "image:1")
	if status.Code(err) != codes.Unknown {
		t.Errorf("removal of an image that stays: %v, want the engine's error", err)
	}
}
